// SPDX-License-Identifier: Apache-2.0
// Statistics of plans and Sessions.
#pragma once
#include <cstdint>

namespace forge {

// Counts and sizes of one plan.
struct PlanStatistics {
  int steps = 0, dispatches = 0, barriers = 0;
  int recordings = 0;                        // command buffers that runs made so far
  int kernels_made = 0, kernels_reused = 0;  // of this plan, by node
  uint64_t arena_bytes = 0, largest_live_set = 0, staging_bytes = 0;
};

// Statistics of the newest binding; `barriers` is set after a run.
struct SessionStatistics : PlanStatistics {
  double lower_ms = 0,
         compile_ms = 0;  // passes; the constants, compiling and recording of a binding
  uint64_t weight_bytes = 0;
};

}  // namespace forge
