// SPDX-License-Identifier: Apache-2.0
#include "runtime/report.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/platform.h"
#include "base/table.h"
#include "ir/passes/passes.h"

namespace forge {
namespace {

nlohmann::json Slice(std::string_view name, int track, double begin_us, double us) {
  return {{"name", name}, {"ph", "X"}, {"pid", 1}, {"tid", track}, {"ts", begin_us}, {"dur", us}};
}

nlohmann::json TrackName(int track, std::string_view name) {
  return {
      {"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", track}, {"args", {{"name", name}}}};
}

// "  3 ->   4  why", for gaps between steps of the plan.
std::string ExplainGaps(const Session& session) {
  std::map<std::string_view, std::vector<int>> places;  // numbers of steps by label
  for (const StepInfo& s : session.executable()->steps())
    if (s.number >= 0) places[s.label].push_back(s.number);
  std::set<std::tuple<int, int, std::string>> lines;
  for (const ir::FusionGap& g : session.gaps()) {
    // Steps of one label: the reader follows what it reads.
    std::optional<std::pair<int, int>> nearest;
    for (int from : places[g.from])
      for (int to : places[g.to])
        if (from < to && (!nearest || to - from < nearest->second - nearest->first))
          nearest = {from, to};
    if (nearest) lines.emplace(nearest->first, nearest->second, g.why);
  }
  std::string out = "why steps are apart:\n";
  for (const auto& [from, to, why] : lines)
    out += fmt::format("{:>4} -> {:>3}  {}\n", from, to, why);
  return out;
}

std::string ExplainParts(const Session& session, bool gaps) {
  const std::vector<SessionPart> parts = session.parts();
  if (parts.empty()) return "nothing has run yet, and types depend on values of a run\n";
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    out += fmt::format("part {} of {}; then the host {}\n", i + 1, parts.size(), parts[i].then);
    out += parts[i].session != nullptr ? Explain(*parts[i].session, gaps)
                                       : "arithmetic of shapes, on the host\n";
  }
  return out;
}

}  // namespace

std::string Explain(const Session& session, bool gaps) {
  if (session.runs_in_parts()) return ExplainParts(session, gaps);
  const Executable* e = session.executable();
  if (e == nullptr) return "nothing is bound yet\n";
  const DeviceInfo& d = session.device().info();
  std::string out = fmt::format("placement: every step on {} ({})\n", d.id, d.name);
  Table table({"step", "kernel", "node", "bytes written", "types"});
  for (const StepInfo& s : e->steps())
    table.Add({s.number < 0 ? "" : std::to_string(s.number), s.kernel, s.label,
               std::to_string(s.bytes_written), s.types});
  out += table.Text();
  const SessionStatistics n = session.statistics();
  out += fmt::format("{} steps in {} dispatches, {} barriers; kernels: {} made, {} reused\n",
                     n.steps, n.dispatches, n.barriers, n.kernels_made, n.kernels_reused);
  const CompileCounts counts = session.device().compile_counts();
  if (counts.compiled + counts.cached != 0)
    out += fmt::format("of the device: {} printed, {} compiled, {} found compiled\n",
                       counts.printed, counts.compiled, counts.cached);
  out += fmt::format("memory: arena {} bytes (largest live set {}), weights {}, staging {}\n",
                     n.arena_bytes, n.largest_live_set, n.weight_bytes, n.staging_bytes);
  return gaps ? out + ExplainGaps(session) : out;
}

absl::StatusOr<std::string> TraceJson(const Session& session, std::span<const HostSpan> host) {
  const Executable* e = session.executable();
  if (e == nullptr || host.empty()) return InvalidArgument("nothing has run yet");
  FORGE_ASSIGN_OR_RETURN(std::vector<StepTime> times, e->Timestamps());
  constexpr int kHost = 1, kQueue = 2;
  nlohmann::json events = nlohmann::json::array();
  const DeviceInfo& d = session.device().info();
  events.push_back({{"name", "process_name"},
                    {"ph", "M"},
                    {"pid", 1},
                    {"args", {{"name", "forge: " + d.name}}}});
  events.push_back(TrackName(kHost, "host"));
  events.push_back(TrackName(kQueue, d.id + " queue"));
  const auto us = [&](int64_t since, int64_t until) {
    return static_cast<double>(until - since) * 1e-3;
  };
  for (const HostSpan& span : host)
    events.push_back(
        Slice(span.name, kHost, us(host[0].begin, span.begin), us(span.begin, span.end)));
  // The device has a clock of its own: its first step is put at the start of the run.
  const double run_us = us(host[0].begin, host.back().begin);
  const auto zero = static_cast<int64_t>(times.empty() ? 0 : times.front().begin);
  for (size_t i = 0; i < times.size() && i < e->steps().size(); ++i) {
    const StepInfo& s = e->steps()[i];
    auto slice =
        Slice(s.label, kQueue, run_us + us(zero, static_cast<int64_t>(times[i].begin)),
              us(static_cast<int64_t>(times[i].begin), static_cast<int64_t>(times[i].end)));
    slice["args"] = {{"kernel", s.kernel}, {"types", s.types}, {"step", s.number}};
    events.push_back(std::move(slice));
  }
  const nlohmann::json trace = {{"traceEvents", events}, {"displayTimeUnit", "ms"}};
  return trace.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

absl::Status DumpArtifacts(const Session& session, const std::filesystem::path& folder) {
  const Executable* e = session.executable();
  return e == nullptr ? absl::OkStatus() : DumpArtifacts(*e, folder);
}

absl::Status DumpArtifacts(const Executable& e, const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Internal("cannot create the folder {}: {}", folder.string(), error.message());
  for (size_t i = 0; i < e.programs().size(); ++i) {
    for (const Artifact& a : e.programs()[i]->artifacts()) {
      FORGE_RETURN_IF_ERROR(WriteFile(folder / fmt::format("{:03}_{}", i, a.name), a.content));
    }
  }
  return absl::OkStatus();
}

}  // namespace forge
