// SPDX-License-Identifier: Apache-2.0
// The optional features a kernel uses: what the verifier compares with a device's, and what a
// printer declares. Narrow types that are only loaded, converted and stored need no arithmetic.
#pragma once
#include "codegen/kernel_ir.h"

namespace forge::codegen {

struct Needs {
  bool f16 = false, f64 = false, i8 = false, i16 = false, i64 = false;
  bool storage8 = false, storage16 = false;
  bool subgroup_basic = false, subgroup_arithmetic = false, subgroup_shuffle = false;
  bool subgroup_ballot = false, int_dot = false, f32 = false;
  bool matrices = false, matrix_elements = false;
};
Needs NeedsOf(const Kernel& k);

}  // namespace forge::codegen
