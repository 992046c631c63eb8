// SPDX-License-Identifier: Apache-2.0
// The layout of shared memory, used by choices, emission and verification.
#pragma once
#include "codegen/kernel/kernel_ir.h"

namespace forge::codegen {

struct SharedArray {
  Type elem = {};
  int64_t extent = 0;     // elements
  bool swizzled = false;  // see View
  // Of its first byte. Swizzled lines are counted from addresses that are multiples of 8 lines.
  uint64_t alignment() const { return swizzled ? 8 * kSwizzledLineBytes : 16; }
};

// Returns an upper bound of the bytes of arrays, each aligned.
int64_t SharedBytes(std::span<const SharedArray> arrays);
int64_t SharedBytes(const Kernel& k);

}  // namespace forge::codegen
