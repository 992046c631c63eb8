// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/indexing/index_arithmetic.h"

#include <limits>

#include "ir/op/axes.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/indexing/scatter.h"
#include "ir/ops/movement/reshape.h"

namespace forge::ir {
namespace {

// The number that leaves others as they are.
Number IdentityOf(ReduceKind kind) {
  if (kind == ReduceKind::kProd) return 1;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (kind == ReduceKind::kMax) return -kInfinity;
  return kind == ReduceKind::kMin ? Number(kInfinity) : Number(0);
}

ScatterMode ModeOf(ReduceKind kind) {
  if (kind == ReduceKind::kProd) return ScatterMode::kMul;
  if (kind == ReduceKind::kMax) return ScatterMode::kMax;
  return kind == ReduceKind::kMin ? ScatterMode::kMin : ScatterMode::kAdd;
}

}  // namespace

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

Value OnAxis(Value indices, int64_t axis, int64_t rank) {
  const auto along = NormalAxis(axis, rank);
  if (!along.ok()) return indices;
  Dims shape(static_cast<size_t>(rank), Dim(1));
  shape[static_cast<size_t>(*along)] = indices.type().elements();
  return (*indices.fn)(Reshape{std::move(shape)}, {indices});
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

Value ReducedInto(Value x, const AxisUpdates& by, ReduceKind kind, bool include_self) {
  Function& f = *x.fn;
  const DType t = x.type().dtype();
  const Dims& updates = by.updates.type().shape();
  const bool mean = kind == ReduceKind::kMean;
  const auto start = [&](Value of, const Number& none) {
    return include_self ? of : ScatterNumber(of, by.indices, updates, by.axis, none);
  };
  const Value from = mean ? Widened(x) : x;
  const Value y = f(Scatter{by.axis, ModeOf(kind)}, {start(from, IdentityOf(kind)), by.indices,
                                                     mean ? Widened(by.updates) : by.updates});
  if (!mean) return y;
  const DType wide = y.type().dtype();
  const Value ones = f(Fill{1, wide, x.type().shape()}, {});
  const Value count = f(Scatter{by.axis, ScatterMode::kAdd},
                        {start(ones, 0), by.indices, f(Fill{1, wide, updates}, {})});
  return Narrowed(Has(kIntTypes, t) ? div_floor(y, count) : y / count, t);
}

}  // namespace forge::ir
