// SPDX-License-Identifier: Apache-2.0
// What the environment switches on and off; see docs/environment.md.
#pragma once
#include "base/status.h"

namespace forge::cuda {

struct Settings {
  bool cublaslt = true;  // matrix products by the library
  bool graphs = true;    // segments as CUDA graphs
  bool nvtx = false;     // steps as ranges that Nsight shows

  // Reads FORGE_CUDA_DISABLE and FORGE_CUDA_NVTX.
  //   errors: InvalidArgument naming the variable, its value and the allowed values
  static absl::StatusOr<Settings> FromEnvironment();
};

}  // namespace forge::cuda
