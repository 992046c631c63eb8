// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/norm/affine.h"

#include <algorithm>

namespace forge::ir {
namespace {

// `v` of rank 1 as a tensor that broadcasts along `axis` of a tensor of that rank.
Value Spread(Value v, int64_t axis, int64_t rank) {
  if (!v) return v;
  Dims shape(static_cast<size_t>(rank - axis), 1);
  shape[0] = v.type().shape()[0];
  return (*v.fn)(Reshape{std::move(shape)}, {v});
}

}  // namespace

void CheckBroadcasts(Value v, const Dims& shape) {
  const Dims& given = v.type().shape();
  const size_t skipped = shape.size() - std::min(shape.size(), given.size());
  bool fits = given.size() <= shape.size();
  for (size_t i = 0; fits && i < given.size(); ++i)
    fits = given[i] == Dim(1) || Unify(shape[skipped + i], given[i]).ok();
  if (!fits)
    v.fn->Fail(InvalidArgument("{} does not broadcast to {}", v.type().ToText(), ToText(shape)));
}

Value Affine(Value y, Value gamma, Value beta) {
  if (!y.fn->status().ok()) return y;
  for (const Value& v : {gamma, beta})
    if (v) CheckBroadcasts(v, y.type().shape());
  if (gamma) y = y * Widened(gamma);
  return beta ? y + Widened(beta) : y;
}

Value AffineAlong(int64_t axis, Value y, Value gamma, Value beta) {
  if (!y.fn->status().ok()) return y;
  const Type type = y.type();
  const absl::StatusOr<int64_t> along = NormalAxis(axis, type.rank());
  if (!along.ok()) y.fn->Fail(along.status());
  for (const Value& v : {gamma, beta}) {
    if (!v || !along.ok()) continue;
    const Dim &extent = type.shape()[static_cast<size_t>(*along)], given = v.type().shape()[0];
    if (!Unify(extent, given).ok())
      y.fn->Fail(InvalidArgument("axis {} has {} elements, not {}", axis, extent.ToText(),
                                 given.ToText()));
  }
  if (!y.fn->status().ok()) return y;
  const Value scale = Spread(Widened(gamma), *along, type.rank());
  const Value shift = Spread(Widened(beta), *along, type.rank());
  if (scale) y = y * scale;
  return shift ? y + shift : y;
}

}  // namespace forge::ir
