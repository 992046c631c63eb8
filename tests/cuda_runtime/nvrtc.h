// SPDX-License-Identifier: Apache-2.0
// The compiler that tests/lab/fetch-cuda has fetched.
#pragma once
#include "cuda_runtime/api/nvrtc.h"

namespace forge::cuda {

// errors: NotFound (it was not fetched), and those of Nvrtc::Load
absl::StatusOr<std::shared_ptr<const Nvrtc>> FetchedNvrtc();

}  // namespace forge::cuda
