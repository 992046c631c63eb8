// SPDX-License-Identifier: Apache-2.0
// Bounds of 32-bit signed integers in a kernel, as far as arithmetic tells. C++ leaves the overflow
// of signed integers undefined, so the printer needs to know where there is none.
#pragma once
#include "codegen/kernel/kernel_ir.h"

namespace forge::codegen {

struct Bounds {
  int64_t low = INT32_MIN, high = INT32_MAX;
  bool overflows = true;  // the instruction may wrap; false: proved not to
};

// Returns the bounds of each value of the kernel; those of other types are meaningless.
std::vector<Bounds> BoundsOf(const Kernel& k);

}  // namespace forge::codegen
