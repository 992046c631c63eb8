// SPDX-License-Identifier: Apache-2.0
// Losses of the scores of classes, along axis 1, or axis 0 of a vector.
#pragma once
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/loss/class_targets.h"
#include "ir/ops/loss/log_softmax_at.h"
#include "ir/ops/loss/loss_reduction.h"
#include "ir/ops/norm/affine.h"
#include "ir/ops/reduction/log_softmax.h"

namespace forge::ir {

// The targets that count: those that are a class, but not `ignored`.
inline Value Counted(Function& f, const ClassTargets& targets, Value target, int64_t ignored) {
  if (!f.status().ok()) return target;
  const Value none = f(Fill{.value = ignored, .dtype = target.type().dtype()}, {});
  return f(And{}, {targets.inside, f(NotEqual{}, {target, none})});
}

struct NllLoss {
  LossReduction reduction = LossReduction::kMean;
  int64_t ignore_index = -100;

  static constexpr OpInfo kInfo{
      .name = "nll_loss",
      .formula = "y = -weight[t] * x[t] at target t, reduced; a mean divides by the weights",
      .inputs = "x: float[*d]; target: i32|i64[*t]; weight: =x[c]?",
      .outputs = "y: =x[*r]",
      .source = "ONNX NegativeLogLikelihoodLoss-13; torch.nn.functional.nll_loss"};
  static constexpr Field kFields[] = {
      FieldOf<&NllLoss::reduction>("reduction", kLossReductionDoc, kLossReductions),
      FieldOf<&NllLoss::ignore_index>("ignore_index",
                                      "A target of loss and weight 0, as are those out of range.")};

  Values decompose(Function& f, ValueSpan in) const {
    const ClassTargets targets(f, in[0], in[1]);
    if (!f.status().ok()) return {in[0]};
    const Value x = Widened(in[0]), counted = Counted(f, targets, in[1], ignore_index);
    const Value weights = targets.WeightsAt(in[2], counted, x.type().dtype());
    const Value losses = select(counted, -(weights * targets.Pick(x)), 0.0);
    return {ReducedByWeight(reduction, losses, weights, in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    using R = LossReduction;
    return {{NllLoss{}, {"float[4,5]", "i64[4] in 0..4"}},
            {NllLoss{R::kSum, 2}, {"float[6,3]", "i32[6] in 0..2", "float[3] in 0.5..2"}},
            {NllLoss{R::kMean, 1}, {"float[6,3]", "i64[6] in 0..2", "float[3] in 0.5..2"}},
            {NllLoss{R::kNone}, {"float[2,3,4,5]", "i64[2,4,5] in 0..2", "float[3] in 0.5..2"}},
            {NllLoss{}, {"float[2,3,7]", "i64[2,7] in 0..2"}},
            {NllLoss{R::kNone}, {"float[5]", "i64[] in 0..4"}},
            {NllLoss{R::kNone}, {"f32[9,3] edges", "i64[9] in -2..4"}},
            {NllLoss{}, {"f32[0,3]", "i64[0]"}},
            {NllLoss{.ignore_index = 0}, {"f32[3,4]", "i64[3] in 0..0"}},
            {.op = NllLoss{}, .in = {"f32[1024,1000]", "i64[1024] in 0..999"}, .bench = true},
            {NllLoss{}, {"f32[4,5]", "i64[5]"}, "targets [5] are not the scores [4, 5]"},
            {NllLoss{}, {"f32[]", "i64[]"}, "has no classes"},
            {NllLoss{}, {"f32[4,5]", "i64[4]", "f32[4]"}, "4 weights for 5 classes"}};
  }
};
const OpDef& DefOf(const NllLoss*);

struct CrossEntropy {
  LossReduction reduction = LossReduction::kMean;
  int64_t ignore_index = -100;
  double label_smoothing = 0;

  static constexpr OpInfo kInfo{
      .name = "cross_entropy",
      .formula = "y = nll_loss(log_softmax(x), target, weight), smoothed",
      .inputs = "x: float[*d]; target: i32|i64[*t]; weight: =x[c]?",
      .outputs = "y: =x[*r]",
      .source = "ONNX SoftmaxCrossEntropyLoss-13; torch.nn.functional.cross_entropy"};
  static constexpr Field kFields[] = {
      FieldOf<&CrossEntropy::reduction>("reduction", kLossReductionDoc, kLossReductions),
      FieldOf<&CrossEntropy::ignore_index>("ignore_index", "As of `nll_loss`."),
      FieldOf<&CrossEntropy::label_smoothing>(
          "label_smoothing", "The share of all classes in a target, within 0..1.")};

  Values decompose(Function& f, ValueSpan in) const {
    if (!(label_smoothing >= 0 && label_smoothing <= 1))
      f.Fail(InvalidArgument("label_smoothing {} is outside 0..1", label_smoothing));
    const ClassTargets targets(f, in[0], in[1]);
    if (!f.status().ok()) return {in[0]};
    const Value scores = Widened(in[0]), counted = Counted(f, targets, in[1], ignore_index);
    const Value weights = targets.WeightsAt(in[2], counted, scores.type().dtype());
    // Smoothed targets need the logarithms of all classes.
    const Value x = label_smoothing > 0 ? f(LogSoftmax{targets.axis}, {scores}) : Value{};
    Value losses = -(weights * (x ? targets.Pick(x) : f(LogSoftmaxAt{}, {scores, in[1]})));
    if (x && f.status().ok()) {
      const Value all = in[2] ? x * f(Reshape{targets.along}, {Widened(in[2])}) : x;
      const Value mean =
          f(Reduce{.kind = ReduceKind::kMean, .axes = {targets.axis}, .keep_dims = false}, {all});
      losses = losses * (1 - label_smoothing) - mean * label_smoothing;
    }
    losses = select(counted, losses, 0.0);
    return {ReducedByWeight(reduction, losses, weights, in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    using R = LossReduction;
    return {
        {CrossEntropy{}, {"float[4,5]", "i64[4] in 0..4"}},
        {CrossEntropy{R::kMean, 1}, {"float[6,3]", "i64[6] in 0..2", "float[3] in 0.5..2"}},
        {CrossEntropy{R::kNone}, {"float[2,3,4,5]", "i32[2,4,5] in 0..2"}},
        {CrossEntropy{R::kMean, 0, 0.1}, {"float[6,4]", "i64[6] in 0..3", "float[4] in 0.5..2"}},
        {CrossEntropy{R::kSum, -100, 0.3}, {"float[2,3,4]", "i64[2,4] in 0..2"}},
        {CrossEntropy{}, {"float[5]", "i64[] in 0..4"}},
        {CrossEntropy{R::kNone}, {"f32[9,3] edges", "i64[9] in -2..4"}},
        {CrossEntropy{}, {"f32[0,3]", "i64[0]"}},
        {.op = CrossEntropy{}, .in = {"f32[256,32000]", "i64[256] in 0..31999"}, .bench = true},
        {CrossEntropy{}, {"f32[4,5]", "i64[4,5]"}, "are not the scores"},
        {CrossEntropy{.label_smoothing = 2}, {"f32[4,5]", "i64[4]"}, "label_smoothing 2 is"}};
  }
};
const OpDef& DefOf(const CrossEntropy*);

struct CrossEntropyOfProbabilities {
  LossReduction reduction = LossReduction::kMean;
  double label_smoothing = 0;

  static constexpr OpInfo kInfo{
      .name = "cross_entropy_of_probabilities",
      .formula = "y = -sum of weight * target * log_softmax(x) over the classes, reduced",
      .inputs = "x: float[*d]; target: =x[*e]; weight: =x[c]?",
      .outputs = "y: =x[*r]",
      .source = "torch.nn.functional.cross_entropy with probabilities as targets"};
  static constexpr Field kFields[] = {FieldOf<&CrossEntropyOfProbabilities::reduction>(
                                          "reduction", kLossReductionDoc, kLossReductions),
                                      FieldOf<&CrossEntropyOfProbabilities::label_smoothing>(
                                          "label_smoothing", "As of `cross_entropy`.")};

  Values decompose(Function& f, ValueSpan in) const {
    if (!(label_smoothing >= 0 && label_smoothing <= 1))
      f.Fail(InvalidArgument("label_smoothing {} is outside 0..1", label_smoothing));
    const int64_t rank = in[0].type().rank(), axis = rank < 2 ? 0 : 1;
    if (rank == 0) f.Fail(InvalidArgument("x is a scalar, which has no classes"));
    if (in[1].type().rank() != rank)
      f.Fail(InvalidArgument("target {} has not the rank of x", in[1].type().ToText()));
    const Value x = f(LogSoftmax{axis}, {Widened(in[0])});
    const Value weighted = AffineAlong(axis, x, in[2], Value{});
    const auto over = [&](ReduceKind kind, Value v) {
      return f(Reduce{.kind = kind, .axes = {axis}, .keep_dims = false}, {v});
    };
    if (!f.status().ok()) return {in[0]};
    Value losses = -over(ReduceKind::kSum, weighted * Widened(in[1]));
    if (label_smoothing > 0)
      losses = losses * (1 - label_smoothing) - over(ReduceKind::kMean, weighted) * label_smoothing;
    return {Reduced(reduction, losses, in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    using Op = CrossEntropyOfProbabilities;
    using R = LossReduction;
    return {{Op{}, {"float[4,5]", "float[4,5] in 0..1"}},
            {Op{R::kSum, 0.2}, {"float[6,3]", "float[6,3] in 0..1", "float[3] in 0.5..2"}},
            {Op{R::kNone}, {"float[2,3,4,2]", "float[2,3,4,2] in 0..1", "float[3] in 0.5..2"}},
            {Op{R::kMean, 0.1}, {"float[5]", "float[5] in 0..1"}},
            {Op{}, {"f32[0,3]", "f32[0,3]"}},
            {Op{}, {"f32[4,5]", "f32[4]"}, "has not the rank of x"},
            {Op{}, {"f32[4,5]", "f32[4,5]", "f32[4]"}, "axis 1 has 5 elements, not 4"}};
  }
};
const OpDef& DefOf(const CrossEntropyOfProbabilities*);

}  // namespace forge::ir
