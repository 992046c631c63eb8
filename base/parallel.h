// SPDX-License-Identifier: Apache-2.0
// Loops over several threads.
#pragma once
#include <cstddef>

#include "absl/functional/function_ref.h"

namespace forge {

// Calls body(0) .. body(n - 1) on up to `threads` threads, including the calling one, and waits for
// them.
void ParallelFor(size_t n, int threads, absl::FunctionRef<void(size_t)> body);

}  // namespace forge
