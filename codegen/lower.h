// SPDX-License-Identifier: Apache-2.0
// What stands between a kernel as schedules write it and as SPIR-V can say it.
#pragma once
#include "codegen/kernel_ir.h"

namespace forge::codegen {

// A copy that does the same with what SPIR-V promises on a device of these caps: min, max and tests
// propagate NaN, conversions saturate, remainders take negative numbers, dot products are spelled
// out where there are none, and so are 64-bit integers. Afterwards Min, Max, Convert and Rem mean
// what SPIR-V's do. What nobody reads is left out; scalars and operands stay as they are.
Kernel Lower(const Kernel& k, const Caps& caps);

}  // namespace forge::codegen
