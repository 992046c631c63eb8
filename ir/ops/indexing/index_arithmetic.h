// SPDX-License-Identifier: Apache-2.0
// Arithmetic of indices whose extents may be symbols.
#pragma once
#include "ir/graph/module.h"
#include "ir/ops/indexing/scatter.h"
#include "ir/ops/movement/gather.h"
#include "ir/ops/reduction/reduce.h"

namespace forge::ir {

// A scalar of the element type of `like`.
Value DimValue(const Dim& d, Value like);
// Counts from the end where an index is negative.
Value Wrapped(Value indices, const Dim& extent);
// The nearest index of 0 .. extent - 1.
Value Clamped(Value wrapped, const Dim& extent);
// Whether wrapped indices lie in 0 .. extent - 1.
Value IsInside(Value wrapped, const Dim& extent);
// 0, 1 .. extent - 1 along one axis of `rank`, of the element type `t`.
Value Along(Function& f, DType t, const Dim& extent, int64_t axis, int64_t rank);
// A list of indices as those of a scatter or gather of `rank` axes along one of them; a bad axis is
// left to that op.
Value OnAxis(Value indices, int64_t axis, int64_t rank);
// Zeros of `shape` to which `updates` is added along an axis: the reverse of gather. The axes of
// `indices` stand in `updates` in place of the axis.
Value AddedInto(const Dims& shape, Value indices, Value updates, int64_t axis);

struct AxisUpdates {
  Value indices, updates;
  int64_t axis = 0;
};
// Returns x, with each element that has updates replaced by the reduction of these, and of itself
// unless `include_self` is false.
Value ReducedInto(Value x, const AxisUpdates& by, ReduceKind kind, bool include_self);

}  // namespace forge::ir
