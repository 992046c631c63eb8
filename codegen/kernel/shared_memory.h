// SPDX-License-Identifier: Apache-2.0
// The layout of shared memory, used by choices, emission and verification.
#pragma once
#include "codegen/kernel/kernel_ir.h"

namespace forge::codegen {

struct SharedArray {
  Type elem = {};
  int64_t extent = 0;  // elements
};

// Returns an upper bound of the bytes of arrays: drivers align each to up to 16 bytes.
int64_t SharedBytes(std::span<const SharedArray> arrays);
int64_t SharedBytes(const Kernel& k);

}  // namespace forge::codegen
