// SPDX-License-Identifier: Apache-2.0
// A CUDA program: kernels and products, their operands and grids.
#pragma once
#include "codegen/target/step_plan.h"
#include "cuda_runtime/kernels/kernel_store.h"
#include "cuda_runtime/products/product.h"
#include "runtime/device/launched_program.h"

namespace forge::cuda {

// One launch with its kernel, or a product of A, B, C and, where it has them, bias and workspace.
struct PlannedLaunch : codegen::LaunchPlan {
  LoadedKernelRef loaded;
  ProductRef product;  // exactly one of the two is set
  std::span<const KernelStatistic> statistics() const {
    return loaded ? loaded->statistics : std::span<const KernelStatistic>();
  }
};

using CudaProgram = LaunchedProgram<PlannedLaunch>;

}  // namespace forge::cuda
