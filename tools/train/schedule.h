// SPDX-License-Identifier: Apache-2.0
// Learning rates over the steps of a training.
#pragma once
#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace forge::tools {

enum class ScheduleKind : uint8_t { kConstant, kCosine, kStep, kOneCycle };

// constant, cosine (to zero), step (a tenth after each third of the steps), one-cycle (up from 1/25
// by cosine over 30 % of the steps, then down to 1/250,000: torch's OneCycleLR)
struct Schedule {
  ScheduleKind kind = ScheduleKind::kConstant;
  double peak = 1e-3;
  int64_t steps = 1;   // of the whole training
  int64_t warmup = 0;  // steps of a linear rise from zero, before any schedule
  // The rate of a step, counted from 0.
  double At(int64_t step) const;
};

// errors: InvalidArgument (lists the names)
absl::StatusOr<ScheduleKind> ParseSchedule(std::string_view name);

}  // namespace forge::tools
