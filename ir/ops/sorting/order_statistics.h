// SPDX-License-Identifier: Apache-2.0
// Elements of sorted rows.
#pragma once
#include "ir/ops/decomposing.h"
#include "ir/ops/sorting/sort.h"

namespace forge::ir {

// x sorted along an axis that has elements, for the rows of a statistic.
struct SortedRows {
  // Fails the function of `x` where the axis is absent or empty.
  static std::optional<SortedRows> Of(Value x, int64_t axis);
  // The values or indices at one place, an axis of extent 1.
  Value At(Value sorted, const Dim& place) const;
  // The same at a place for each row, of type [.., 1, ..]: i64, or the type of the values.
  Value Pick(Value sorted, Value place) const;
  // 0, 1 .. along the axis.
  Value Places(DType t) const;
  // The number of elements, and of those that are numbers, as elements of `t`.
  Value Elements(DType t) const;
  Value Numbers(DType t) const;
  // `y` where the row has no NaN, else NaN.
  Value UnlessNan(Value y) const;
  // Without the axis, which has extent 1, unless it is kept.
  Value Kept(Value y, bool keep_dims) const;

  Value x, values, index;
  int64_t axis = 0;
  Dim extent = 0;
};

}  // namespace forge::ir
