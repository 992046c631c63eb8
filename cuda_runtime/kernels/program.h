// SPDX-License-Identifier: Apache-2.0
// A CUDA program: kernels, their operands and grids.
#pragma once
#include "codegen/target/step_plan.h"
#include "cuda_runtime/kernels/kernel_store.h"
#include "runtime/device/launched_program.h"

namespace forge::cuda {

// One launch with its kernel.
struct PlannedLaunch : codegen::LaunchPlan {
  LoadedKernelRef loaded;
  std::span<const KernelStatistic> statistics() const { return loaded->statistics; }
};

using CudaProgram = LaunchedProgram<PlannedLaunch>;

}  // namespace forge::cuda
