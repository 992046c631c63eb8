// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/sorting/order_statistics.h"

#include "ir/ops/creation/fill.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/elementwise/elementwise.h"

namespace forge::ir {

std::optional<SortedRows> SortedRows::Of(Value x, int64_t axis) {
  Function& f = *x.fn;
  const absl::StatusOr<int64_t> normal = NormalAxis(axis, x.type().rank());
  if (!normal.ok()) return f.Fail(normal.status()), std::nullopt;
  const Dim extent = x.type().shape()[static_cast<size_t>(*normal)];
  if (extent.max() == 0) {
    f.Fail(InvalidArgument("axis {} of {} has no element", *normal, x.type().ToText()));
    return std::nullopt;
  }
  const Values sorted = f.Add(Sort{.axis = *normal}, std::array{x});
  return SortedRows{x, sorted[0], sorted[1], *normal, extent};
}

Value SortedRows::At(Value sorted, const Dim& place) const {
  return (*x.fn)(Slice{.begin = {place}, .end = {place + 1}, .axes = {axis}}, {sorted});
}

Value SortedRows::Places(DType t) const {
  Dims shape(x.type().shape().size() - static_cast<size_t>(axis), Dim(1));
  shape[0] = extent;
  return (*x.fn)(Reshape{shape}, {(*x.fn)(Iota{.dtype = t, .count = extent}, {})});
}

Value SortedRows::Pick(Value sorted, Value place) const {
  const Value here = (*x.fn)(Equal{}, {Places(place.type().dtype()), place});
  return ReduceAxes(ReduceKind::kSum, select(here, sorted, 0.0), {axis});
}

Value SortedRows::Elements(DType t) const {
  const Value ones = (*x.fn)(Fill{1, t, x.type().shape()}, {});
  return ReduceAxes(ReduceKind::kSum, ones, {axis});
}

Value SortedRows::Numbers(DType t) const {
  const Value ones = (*x.fn)(Fill{1, t, x.type().shape()}, {});
  return ReduceAxes(ReduceKind::kSum, select((*x.fn)(Equal{}, {x, x}), ones, 0.0), {axis});
}

Value SortedRows::UnlessNan(Value y) const {
  if (!Has(kFloatTypes, x.type().dtype())) return y;
  const Value last = At(values, extent - 1);
  return select((*x.fn)(Equal{}, {last, last}), y, last);
}

Value SortedRows::Kept(Value y, bool keep_dims) const {
  if (keep_dims) return y;
  Dims shape = y.type().shape();
  shape.erase(shape.begin() + axis);
  return (*x.fn)(Reshape{shape}, {y});
}

}  // namespace forge::ir
