// SPDX-License-Identifier: Apache-2.0
// Losses of the probability of one of two classes.
#pragma once
#include "ir/ops/loss/loss_reduction.h"

namespace forge::ir {

struct BinaryCrossEntropy {
  LossReduction reduction = LossReduction::kMean;

  static constexpr OpInfo kInfo{
      .name = "binary_cross_entropy",
      .formula =
          "y = -weight * (target * log(x) + (1 - target) * log(1 - x)), reduced; "
          "logarithms are at least -100",
      .inputs = "x: float[*d]; target: =x[*e]; weight: =x[*w]?",
      .outputs = "y: =x[*r]",
      .source = "torch.nn.functional.binary_cross_entropy"};
  static constexpr Field kFields[] = {
      FieldOf<&BinaryCrossEntropy::reduction>("reduction", kLossReductionDoc, kLossReductions)};

  Values decompose(Function&, ValueSpan in) const {
    const Value x = Widened(in[0]), target = Widened(in[1]);
    const Value at_one = target * max(log(x), -100.0);
    const Value at_zero = (1.0 - target) * max(log1p(-x), -100.0);
    Value y = -(at_one + at_zero);
    if (in[2]) y = y * Widened(in[2]);
    return {Reduced(reduction, y, in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    using R = LossReduction;
    const std::string unit = " in 0.05..0.95";
    return {{BinaryCrossEntropy{}, {"float[4,5]" + unit, "float[4,5] in 0..1"}},
            {BinaryCrossEntropy{R::kSum}, {"float[3,7]" + unit, "float[3,7] in 0..1", "float[7]"}},
            {BinaryCrossEntropy{R::kNone}, {"float[19]" + unit, "float[19] in 0..1"}},
            {BinaryCrossEntropy{R::kNone}, {"f32[7] in 0..0", "f32[7] in 0..1"}},
            {BinaryCrossEntropy{R::kNone}, {"f32[6] in 1..1", "f32[6] in 0..1"}},
            {BinaryCrossEntropy{}, {"f32[]" + unit, "f32[] in 0..1"}},
            {BinaryCrossEntropy{}, {"f32[0,3]", "f32[0,3]"}},
            {BinaryCrossEntropy{}, {"f32[2,3]", "f32[2,4]"}, "do not broadcast"},
            {BinaryCrossEntropy{}, {"f32[2]", "f32[2]", "f16[2]"}, "weight"}};
  }
};
const OpDef& DefOf(const BinaryCrossEntropy*);

struct BinaryCrossEntropyWithLogits {
  LossReduction reduction = LossReduction::kMean;

  static constexpr OpInfo kInfo{
      .name = "binary_cross_entropy_with_logits",
      .formula =
          "y = -weight * (pos_weight * target * log(s) + (1 - target) * log(1 - s)), "
          "reduced; s = 1 / (1 + e^-x)",
      .inputs = "x: float[*d]; target: =x[*e]; weight: =x[*w]?; pos_weight: =x[*p]?",
      .outputs = "y: =x[*r]",
      .source = "torch.nn.functional.binary_cross_entropy_with_logits"};
  static constexpr Field kFields[] = {FieldOf<&BinaryCrossEntropyWithLogits::reduction>(
      "reduction", kLossReductionDoc, kLossReductions)};

  Values decompose(Function&, ValueSpan in) const {
    const Value x = Widened(in[0]), target = Widened(in[1]);
    Value log_of = log_sigmoid(x);
    if (in[3]) log_of = log_of * ((Widened(in[3]) - 1.0) * target + 1.0);
    Value y = (1.0 - target) * x - log_of;
    if (in[2]) y = y * Widened(in[2]);
    return {Reduced(reduction, y, in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    using Op = BinaryCrossEntropyWithLogits;
    using R = LossReduction;
    return {{Op{}, {"float[4,5]", "float[4,5] in 0..1"}},
            {Op{R::kSum}, {"float[3,7]", "float[3,7] in 0..1", "float[7]", "float[7] in 0.5..3"}},
            {Op{R::kNone}, {"float[3,7]", "float[3,7] in 0..1", "", "float[7] in 0.5..3"}},
            {Op{R::kNone}, {"float[19] edges", "float[19] in 0..1"}},
            {Op{R::kNone}, {"f32[40] in -200..200", "f32[40] in 0..1", "f32[1]"}},
            {Op{}, {"f32[0,3]", "f32[0,3]"}},
            {Op{}, {"f32[2,3]", "f32[3,3]"}, "do not broadcast"},
            {Op{}, {"f32[2]", "f32[2]", "", "f32[3]"}, "do not broadcast"}};
  }
};
const OpDef& DefOf(const BinaryCrossEntropyWithLogits*);

}  // namespace forge::ir
