// SPDX-License-Identifier: Apache-2.0
// The element-wise ops as builders and passes name them: structs of attributes. What they compute
// is one row each of ir/ops/elementwise/families, see ir/ops/elementwise/rows.inc; this header is
// made from the heads of the rows, so that a change of an expression does not change it.
//
// Operands broadcast by the NumPy rule.
#pragma once
#include <cmath>
#include <limits>
#include <numbers>

#include "ir/op/op.h"
#include "ir/ops/elementwise/scalar_def.h"

namespace forge::ir {

#define FORGE_ROW(T, ...)       \
  struct T {                    \
    using Kind = ElementWiseOp; \
    __VA_ARGS__                 \
  };                            \
  const OpDef& DefOf(const T*);
#include "ir/ops/elementwise/row_list.inc"

}  // namespace forge::ir
