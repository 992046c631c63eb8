// SPDX-License-Identifier: Apache-2.0
#include "tools/run/timed_runs.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/platform.h"
#include "tools/support/terminal.h"

namespace forge::tools {
namespace {

double Seconds(int64_t since) { return static_cast<double>(NowNanoseconds() - since) * 1e-9; }

// One Session's part.
struct Stream {
  Session& session;
  std::span<const NamedTensor> inputs;
  const AfterRun* after;  // may be null
  std::atomic<bool>& stop;
  std::vector<NamedTensor> results = {};
  std::vector<double> untimed_ms = {}, timed_ms = {};
  absl::Status status = {};

  absl::Status RunOnce(bool timed) {
    const int64_t begin = NowNanoseconds();
    FORGE_ASSIGN_OR_RETURN(results, session.Run(inputs));
    (timed ? timed_ms : untimed_ms).push_back(Seconds(begin) * 1e3);
    return after != nullptr && *after ? (*after)(begin, timed) : absl::OkStatus();
  }

  void Run(bool timed, const RunLimits& limits) {
    const int64_t begin = NowNanoseconds();
    const int runs = timed ? limits.repeat : limits.warmup;
    const bool by_clock = timed && limits.seconds > 0;
    for (int i = 0; status.ok() && !stop; ++i) {
      if (by_clock ? i > 0 && Seconds(begin) >= limits.seconds : i >= runs) break;
      status = RunOnce(timed);
    }
    if (!status.ok()) stop = true;
  }
};

absl::Status RunAll(std::vector<Stream>& streams, bool timed, const RunLimits& limits) {
  std::vector<std::thread> threads;
  for (size_t i = 1; i < streams.size(); ++i)
    threads.emplace_back([&, i] { streams[i].Run(timed, limits); });
  streams[0].Run(timed, limits);
  for (std::thread& t : threads) t.join();
  for (const Stream& s : streams) FORGE_RETURN_IF_ERROR(s.status);
  return absl::OkStatus();
}

}  // namespace

double Latency::At(double share) const {
  std::vector<double> sorted = runs_ms;
  std::sort(sorted.begin(), sorted.end());
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[rank - (share > 0 ? 1 : 0)];
}

std::string ToText(const Latency& l, size_t streams) {
  return fmt::format("latency: min {}, median {}, p95 {}, p99 {} of {} runs{}; {:.1f} runs/s",
                     Duration(l.At(0) * 1e-3), Duration(l.At(0.5) * 1e-3),
                     Duration(l.At(0.95) * 1e-3), Duration(l.At(0.99) * 1e-3), l.runs_ms.size(),
                     streams > 1 ? fmt::format(" in {} streams", streams) : "", l.PerSecond());
}

nlohmann::json ToJson(const Latency& l) {
  return {{"min", l.At(0)},    {"median", l.At(0.5)},      {"p95", l.At(0.95)},
          {"p99", l.At(0.99)}, {"runs", l.runs_ms.size()}, {"warmup", l.warmup}};
}

absl::StatusOr<std::vector<NamedTensor>> RunTimed(
    std::span<const std::unique_ptr<Session>> sessions, std::span<const NamedTensor> inputs,
    const RunLimits& limits, const AfterRun& after, Latency& latency) {
  std::atomic<bool> stop = false;
  std::vector<Stream> streams;
  for (const std::unique_ptr<Session>& s : sessions)
    streams.push_back({*s, inputs, streams.empty() ? &after : nullptr, stop});
  FORGE_RETURN_IF_ERROR(RunAll(streams, false, limits));
  const int64_t begin = NowNanoseconds();
  FORGE_RETURN_IF_ERROR(RunAll(streams, true, limits));
  latency.wall_seconds = Seconds(begin);
  const Stream& first = streams[0];
  latency.warmup = limits.warmup;
  latency.first_ms = first.untimed_ms.empty() ? first.timed_ms[0] : first.untimed_ms[0];
  for (const Stream& s : streams)
    latency.runs_ms.insert(latency.runs_ms.end(), s.timed_ms.begin(), s.timed_ms.end());
  return std::move(streams[0].results);
}

}  // namespace forge::tools
