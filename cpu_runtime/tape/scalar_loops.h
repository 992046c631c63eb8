// SPDX-License-Identifier: Apache-2.0
// One loop over dense elements for each element-wise op and element type.
#pragma once
#include <cstddef>

#include "base/narrow_float.h"
#include "ir/ops/elementwise/elementwise.h"

namespace forge::cpu {

// The type in which loops hold elements: f32 for narrower floats, bytes 0 and 1 for bool, the
// stored type for all others.
constexpr DType HeldAs(DType t) {
  constexpr DTypes kNarrow = Bit(DType::kF16) | Bit(DType::kBF16) | kFloat8Types;
  return Has(kNarrow, t) ? DType::kF32 : t;
}

// Applies an op to n elements of each operand; `out` may be one of the operands.
using ScalarLoop = void (*)(const void* self, const void* const* in, void* out, size_t n);

// Returns the loop of an op whose last operand is held as `domain`; null where the op does not take
// that type, and for casts (see ConvertLoop).
ScalarLoop FindScalarLoop(const ir::ScalarDef& def, DType domain);

// The same for one op, in cpu_runtime/tape/scalar_loops_family.h: vector code for f32, plain loops
// for the other types.
#define FORGE_ROW(T, ...) ScalarLoop ScalarLoopOf(const ir::T*, DType domain);
#include "ir/ops/elementwise/row_list.inc"

}  // namespace forge::cpu
