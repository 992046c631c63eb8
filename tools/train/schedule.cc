// SPDX-License-Identifier: Apache-2.0
#include "tools/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace forge::tools {
namespace {

// From `a` to `b` along half a cosine.
double Between(double a, double b, double share) {
  return b + (a - b) / 2 * (1 + std::cos(std::numbers::pi * share));
}

}  // namespace

double Schedule::At(int64_t step) const {
  if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup);
  const auto done = static_cast<double>(step - warmup);
  const auto all = static_cast<double>(std::max<int64_t>(steps - warmup, 1));
  switch (kind) {
    case ScheduleKind::kConstant:
      return peak;
    case ScheduleKind::kCosine:
      return Between(peak, 0, std::min(done / all, 1.0));
    case ScheduleKind::kStep:
      return peak * std::pow(0.1, std::min(std::floor(3 * done / all), 2.0));
    case ScheduleKind::kOneCycle: {
      const double rise = 0.3 * all - 1, low = peak / 25;
      if (done <= rise) return Between(low, peak, done / rise);
      return Between(peak, low / 1e4, std::min((done - rise) / (all - 1 - rise), 1.0));
    }
  }
  return peak;
}

absl::StatusOr<ScheduleKind> ParseSchedule(std::string_view name) {
  if (name == "constant") return ScheduleKind::kConstant;
  if (name == "cosine") return ScheduleKind::kCosine;
  if (name == "step") return ScheduleKind::kStep;
  if (name == "one-cycle") return ScheduleKind::kOneCycle;
  return InvalidArgument("schedule '{}' is not constant, cosine, step or one-cycle", name);
}

}  // namespace forge::tools
