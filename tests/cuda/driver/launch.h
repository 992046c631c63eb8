// SPDX-License-Identifier: Apache-2.0
// Launches of kernels.
#pragma once
#include "tests/cuda/driver/schedule.h"

namespace forge::emulated {

// A node that runs the kernel with a copy of its parameters.  errors: what a launch returns at once
CUresult MakeLaunch(const CUDA_KERNEL_NODE_PARAMS& params, GraphNode& node);

}  // namespace forge::emulated
