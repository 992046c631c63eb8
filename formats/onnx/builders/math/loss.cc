// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/builders/families.h"
#include "ir/ops/loss/classification.h"

namespace forge::formats {
namespace {

ir::LossReduction ReductionOf(OnnxNode& n) {
  const std::string how = n.String("reduction", "mean");
  if (how == "none") return ir::LossReduction::kNone;
  if (how == "sum") return ir::LossReduction::kSum;
  if (how != "mean") n.Fail("unknown reduction '{}'", how);
  return ir::LossReduction::kMean;
}

// Without the attribute none is ignored: no class has this index.
int64_t IgnoredOf(OnnxNode& n) { return n.Int64("ignore_index", -1); }

ir::Values BuildNegativeLogLikelihoodLoss(OnnxNode& n) {
  const ir::NllLoss op{.reduction = ReductionOf(n), .ignore_index = IgnoredOf(n)};
  return {n.fn()(op, {n.in(0), n.in(1), n.in(2)})};
}

ir::Values BuildSoftmaxCrossEntropyLoss(OnnxNode& n) {
  const ir::CrossEntropy op{.reduction = ReductionOf(n), .ignore_index = IgnoredOf(n)};
  ir::Values out = {n.fn()(op, {n.in(0), n.in(1), n.in(2)})};
  if (n.HasOutput(1)) out.push_back(n.fn()(ir::LogSoftmax{.axis = 1}, {n.in(0)}));
  return out;
}

constexpr OnnxOp kLossOps[] = {
    {"", "NegativeLogLikelihoodLoss", 12, 2, 3, BuildNegativeLogLikelihoodLoss},
    {"", "SoftmaxCrossEntropyLoss", 12, 2, 3, BuildSoftmaxCrossEntropyLoss},
};

}  // namespace

std::span<const OnnxOp> LossOps() { return kLossOps; }

}  // namespace forge::formats
