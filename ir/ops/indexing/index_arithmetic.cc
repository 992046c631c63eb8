// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/indexing/index_arithmetic.h"

#include "ir/ops/creation/fill.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/indexing/scatter.h"
#include "ir/ops/movement/reshape.h"

namespace forge::ir {

Value DimValue(const Dim& d, Value like) {
  Function& f = *like.fn;
  const DType t = like.type().dtype();
  if (d.is_constant()) return f(Fill{d.constant(), t, {}}, {});
  return f(Reshape{{}}, {f(Iota{.dtype = t, .begin = d, .count = 1}, {})});
}

Value Wrapped(Value indices, const Dim& extent) {
  return select(indices < 0.0, indices + DimValue(extent, indices), indices);
}

Value IsInside(Value wrapped, const Dim& extent) {
  Function& f = *wrapped.fn;
  return f(And{}, {wrapped > -1.0, wrapped < DimValue(extent, wrapped)});
}

Value Clamped(Value wrapped, const Dim& extent) {
  return max(min(wrapped, DimValue(extent - 1, wrapped)), 0.0);
}

Value Along(Function& f, DType t, const Dim& extent, int64_t axis, int64_t rank) {
  Dims shape(static_cast<size_t>(rank), Dim(1));
  shape[static_cast<size_t>(axis)] = extent;
  return f(Reshape{std::move(shape)}, {f(Iota{.dtype = t, .count = extent}, {})});
}

Value AddedInto(const Dims& shape, Value indices, Value updates, int64_t axis) {
  Function& f = *updates.fn;
  const auto a = static_cast<size_t>(axis);
  const Dim count = indices.type().elements();
  Dims along(shape.size(), Dim(1)), flat = shape;
  along[a] = flat[a] = count;
  const Value zeros = f(Fill{0, updates.type().dtype(), shape}, {});
  return f(Scatter{axis, ScatterMode::kAdd}, {zeros, f(Reshape{std::move(along)}, {indices}),
                                              f(Reshape{std::move(flat)}, {updates})});
}

}  // namespace forge::ir
