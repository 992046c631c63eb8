// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/loss/loss_reduction.h"

namespace forge::ir {
namespace {

Value Whole(ReduceKind kind, Value x) {
  return (*x.fn)(Reduce{.kind = kind, .axes = {}, .keep_dims = false}, {x});
}

}  // namespace

Value Reduced(LossReduction how, Value losses, DType to) {
  if (!losses.fn->status().ok()) return losses;
  if (how == LossReduction::kSum) losses = Whole(ReduceKind::kSum, losses);
  if (how == LossReduction::kMean) losses = Whole(ReduceKind::kMean, losses);
  if (how == LossReduction::kBatchMean) {
    if (losses.type().rank() == 0)
      losses.fn->Fail(InvalidArgument("a scalar has no batch for reduction batchmean"));
    losses = Whole(ReduceKind::kSum, ReduceAxes(ReduceKind::kMean, losses, {0}));
  }
  return Narrowed(losses, to);
}

Value ReducedByWeight(LossReduction how, Value losses, Value weights, DType to) {
  if (how != LossReduction::kMean || !losses.fn->status().ok()) return Reduced(how, losses, to);
  return Narrowed(Whole(ReduceKind::kSum, losses) / Whole(ReduceKind::kSum, weights), to);
}

}  // namespace forge::ir
