// SPDX-License-Identifier: Apache-2.0
// The element-wise ops as structs of attributes, for builders and passes. What an op computes is
// its row in ir/ops/elementwise/families (see ir/ops/elementwise/rows.inc). This header is
// generated from the first lines of the rows, so changing an expression does not change it.
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
