// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

// Appends the gradient of a selection along an axis: y[.., j, ..] is the sum of x[.., i, ..] over
// all i whose index[.., i, ..] is j, for j from 0 to extent - 1.
//   x, index: [*a, n, *b], index i64     result: [*a, extent, *b]
Value ScatterSum(Value x, Value index, int64_t axis, const Dim& extent);

}  // namespace forge::ir
