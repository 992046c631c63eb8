// SPDX-License-Identifier: Apache-2.0
#include "tools/page/trace_times.h"

#include <climits>
#include <nlohmann/json.hpp>

#include "base/platform.h"

namespace forge::tools {
namespace {

struct Slice {
  std::string label;
  double ms = 0;
};

// The slices of steps that compute, by number.
absl::StatusOr<std::map<int, Slice>> ReadSlices(const std::filesystem::path& path) {
  FORGE_ASSIGN_OR_RETURN(const forge::Bytes file, MapFile(path));
  const auto json = nlohmann::json::parse(file.data(), file.data() + file.size(), nullptr, false);
  if (!json.is_object() || !json.contains("traceEvents") || !json["traceEvents"].is_array())
    return DataLoss("{}: not a trace of forge-run --profile", path.string());
  std::map<int, Slice> slices;
  for (const auto& e : json["traceEvents"]) {
    if (!e.is_object() || !e.contains("args") || !e["args"].is_object()) continue;
    const auto step = e["args"].find("step");
    if (step == e["args"].end() || !step->is_number_integer()) continue;
    if (!e.contains("dur") || !e["dur"].is_number() || !e.contains("name") ||
        !e["name"].is_string())
      return DataLoss("{}: step {} has no time", path.string(), step->dump());
    const auto number = step->get<int64_t>();
    if (number < 0 || number > INT_MAX) continue;  // a copy
    slices[static_cast<int>(number)] = {e["name"], e["dur"].get<double>() * 1e-3};
  }
  return slices;
}

}  // namespace

absl::Status AddTimes(const std::filesystem::path& trace, const Executable& e, PageSteps& steps) {
  FORGE_ASSIGN_OR_RETURN(const auto slices, ReadSlices(trace));
  for (size_t i = 0; i < e.steps().size(); ++i) {
    const StepInfo& s = e.steps()[i];
    if (e.step_nodes()[i] == nullptr) continue;
    const auto at = slices.find(s.number);
    if (at == slices.end() || at->second.label != s.label)
      return InvalidArgument(
          "{} is a trace of another plan: its step {} is '{}', but here it is '{}'; give the "
          "device and the dimensions of that run",
          trace.string(), s.number, at == slices.end() ? "missing" : at->second.label, s.label);
    steps[e.step_nodes()[i]].ms = at->second.ms;
  }
  if (slices.size() != e.programs().size())
    return InvalidArgument("{} is a trace of another plan: it has {} steps, but this plan has {}",
                           trace.string(), slices.size(), e.programs().size());
  return absl::OkStatus();
}

}  // namespace forge::tools
