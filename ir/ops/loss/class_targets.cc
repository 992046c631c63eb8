// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/loss/class_targets.h"

#include "ir/ops/creation/iota.h"
#include "ir/ops/elementwise/elementwise.h"

namespace forge::ir {
namespace {

bool Matches(const Dims& scores, const Dims& targets, int64_t axis) {
  if (targets.size() + 1 != scores.size()) return false;
  for (size_t i = 0; i < targets.size(); ++i)
    if (!Unify(targets[i], scores[i + (static_cast<int64_t>(i) >= axis)]).ok()) return false;
  return true;
}

}  // namespace

ClassTargets::ClassTargets(Function& f, Value x, Value target) {
  if (!f.status().ok()) return;
  const Dims scores = x.type().shape(), targets = target.type().shape();
  axis = scores.size() < 2 ? 0 : 1;
  if (scores.empty()) f.Fail(InvalidArgument("x is a scalar, which has no classes"));
  if (!Matches(scores, targets, axis))
    f.Fail(InvalidArgument("targets {} are not the scores {} without axis {}", ToText(targets),
                           ToText(scores), axis));
  if (!f.status().ok()) return;
  const DType t = target.type().dtype();
  const Dim& count = scores[static_cast<size_t>(axis)];
  along.assign(scores.size(), 1);
  along[static_cast<size_t>(axis)] = count;
  const Value classes = f(Reshape{along}, {f(Iota{.dtype = DType::kI32, .count = count}, {})});
  column = targets;
  column.insert(column.begin() + axis, 1);
  const Value below = ScalarOf(f, count, t) > target;
  inside = f(And{}, {target > -1.0, below});
  // In 32 bits, of which vectors hold twice as many.
  const Value known = convert(select(inside, target, -1.0), DType::kI32);
  hit = f(Equal{}, {f(Reshape{column}, {known}), classes});
}

Value ClassTargets::Pick(Value x) const {
  if (!x.fn->status().ok()) return x;
  const Value chosen = select(hit, x, 0.0);
  return (*x.fn)(Reduce{.kind = ReduceKind::kSum, .axes = {axis}, .keep_dims = false}, {chosen});
}

Value ClassTargets::WeightsAt(Value weight, Value counted, DType t) const {
  Function& f = *counted.fn;
  if (!f.status().ok()) return counted;
  if (!weight) return convert(counted, t);
  const Dim &have = weight.type().shape()[0], &want = along[static_cast<size_t>(axis)];
  if (!Unify(have, want).ok())
    f.Fail(InvalidArgument("{} weights for {} classes", have.ToText(), want.ToText()));
  return select(counted, Pick(f(Reshape{along}, {Widened(weight)})), 0.0);
}

}  // namespace forge::ir
