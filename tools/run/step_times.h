// SPDX-License-Identifier: Apache-2.0
// The time of a run by op and by step.
#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/plan/executable.h"

namespace forge::tools {

// Means over the added runs, on the clock of the device. Steps are timed as if sequential: their
// sum exceeds the time of a run where a device overlaps them.
class StepTimes {
 public:
  // Adds the last run of `e`.
  //   errors: those of Executable::Timestamps; Internal (another plan)
  absl::Status Add(const Executable& e);
  // A table by op, and a table of the slowest steps.
  std::string Text() const;
  nlohmann::json ByOp() const;     // [{op, steps, ms, share}], the slowest first
  nlohmann::json BySteps() const;  // [{number, label, op, kernel, types, ms}], in the plan's order

 private:
  struct Row {
    std::string op;
    int steps = 0;
    double ms = 0;
  };
  std::vector<Row> Rows() const;
  double StepMs(size_t step) const { return nanoseconds_[step] / runs_ * 1e-6; }

  std::vector<StepInfo> steps_;
  std::vector<std::string> ops_;     // op of each step; for fused steps, the ops in it
  std::vector<double> nanoseconds_;  // sums over the runs
  int runs_ = 0;
};

}  // namespace forge::tools
