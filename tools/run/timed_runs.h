// SPDX-License-Identifier: Apache-2.0
// Timed runs of a model.
#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/session.h"

namespace forge::tools {

struct RunLimits {
  int warmup = 0, repeat = 1;
  double seconds = 0;  // above 0: start timed runs for this long, instead of `repeat`
};

struct Latency {
  double first_ms = 0;          // time of the first run, which compiles
  int warmup = 0;               // untimed runs of each stream
  std::vector<double> runs_ms;  // timed runs of all streams
  double wall_seconds = 0;      // from the start to the end of the timed runs
  // The quantile of the times: the shortest time that this share of the runs does not exceed; 0:
  // the minimum.
  double At(double share) const;
  double PerSecond() const { return static_cast<double>(runs_ms.size()) / wall_seconds; }
};
std::string ToText(const Latency& latency, size_t streams);
nlohmann::json ToJson(const Latency& latency);  // min, median, p95, p99, runs, warmup

// Called after each run of the first Session; not part of the timed interval.
//   begin: of the run, as NowNanoseconds()
using AfterRun = std::function<absl::Status(int64_t begin, bool timed)>;

// Runs each Session on its own thread, all with the same inputs: the untimed runs first, then the
// timed ones concurrently. Returns the results of the last run of the first Session.
//   errors: the first error of any Session, which ends the others between runs; those of `after`
absl::StatusOr<std::vector<NamedTensor>> RunTimed(
    std::span<const std::unique_ptr<Session>> sessions, std::span<const NamedTensor> inputs,
    const RunLimits& limits, const AfterRun& after, Latency& latency);

}  // namespace forge::tools
