// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

#include "absl/functional/function_ref.h"

namespace forge::vk {

// Calls body(0) .. body(n - 1) on up to `threads` threads, the caller's among them, and waits.
void ParallelFor(size_t n, int threads, absl::FunctionRef<void(size_t)> body);

}  // namespace forge::vk
