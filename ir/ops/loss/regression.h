// SPDX-License-Identifier: Apache-2.0
// Losses of a difference. Operands broadcast.
#pragma once
#include "ir/ops/loss/loss_reduction.h"

namespace forge::ir {

struct MseLoss {
  LossReduction reduction = LossReduction::kMean;

  static constexpr OpInfo kInfo{.name = "mse_loss",
                                .formula = "y = (x - target)^2, reduced",
                                .inputs = "x: float[*d]; target: =x[*e]",
                                .outputs = "y: =x[*r]",
                                .source = "torch.nn.functional.mse_loss"};
  static constexpr Field kFields[] = {
      FieldOf<&MseLoss::reduction>("reduction", kLossReductionDoc, kLossReductions)};

  Values decompose(Function&, ValueSpan in) const {
    const Value d = Widened(in[0]) - Widened(in[1]);
    return {Reduced(reduction, d * d, in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    return {{MseLoss{}, {"float[4,5]", "float[4,5]"}},
            {MseLoss{LossReduction::kSum}, {"float[3,1,2,7]", "float[2,1]"}},
            {MseLoss{LossReduction::kNone}, {"float[19]", "float[19] edges"}},
            {MseLoss{}, {"f32[]", "f32[]"}},
            {MseLoss{}, {"float[0,3]", "float[0,3]"}},
            {MseLoss{LossReduction::kSum}, {"f32[0,3]", "f32[1,3]"}},
            {.op = MseLoss{}, .in = {"f32[256,4096]", "f32[256,4096]"}, .bench = true},
            {MseLoss{}, {"f32[2,3]", "f32[2,4]"}, "do not broadcast"},
            {MseLoss{}, {"i32[2]", "i32[2]"}, "float"}};
  }
};
const OpDef& DefOf(const MseLoss*);

struct L1Loss {
  LossReduction reduction = LossReduction::kMean;

  static constexpr OpInfo kInfo{.name = "l1_loss",
                                .formula = "y = |x - target|, reduced",
                                .inputs = "x: float|complex[*d]; target: =x[*e]",
                                .outputs = "y: real(x)[*r]",
                                .source = "torch.nn.functional.l1_loss"};
  static constexpr Field kFields[] = {
      FieldOf<&L1Loss::reduction>("reduction", kLossReductionDoc, kLossReductions)};

  Values decompose(Function&, ValueSpan in) const {
    const Value distance = abs(Widened(in[0]) - Widened(in[1]));
    return {Reduced(reduction, distance, RealOf(in[0].type().dtype()))};
  }
  [[gnu::cold]] static Cases cases() {
    return {{L1Loss{}, {"float[4,5]", "float[4,5]"}},
            {L1Loss{LossReduction::kSum}, {"float[3,7]", "float[7]"}},
            {L1Loss{LossReduction::kNone}, {"float[19] edges", "float[19]"}},
            {L1Loss{}, {"complex[4,5]", "complex[5]"}},
            {L1Loss{}, {"f32[0]", "f32[0]"}},
            {L1Loss{}, {"f32[]", "f32[3,1]"}},
            {L1Loss{}, {"f32[2,3]", "f32[2]"}, "do not broadcast"},
            {L1Loss{}, {"f32[2]", "f64[2]"}, "target"}};
  }
};
const OpDef& DefOf(const L1Loss*);

struct SmoothL1Loss {
  LossReduction reduction = LossReduction::kMean;
  double beta = 1;

  static constexpr OpInfo kInfo{
      .name = "smooth_l1_loss",
      .formula = "y = d^2 / (2 beta) where d = |x - target| is below beta, else d - beta / 2",
      .inputs = "x: float[*d]; target: =x[*e]",
      .outputs = "y: =x[*r]",
      .source = "torch.nn.functional.smooth_l1_loss"};
  static constexpr Field kFields[] = {
      FieldOf<&SmoothL1Loss::reduction>("reduction", kLossReductionDoc, kLossReductions),
      FieldOf<&SmoothL1Loss::beta>("beta", "At least 0; 0 is `l1_loss`.")};

  Values decompose(Function& f, ValueSpan in) const {
    if (!(beta >= 0)) f.Fail(InvalidArgument("smooth_l1_loss: beta {} is below 0", beta));
    Value d = abs(Widened(in[0]) - Widened(in[1]));
    if (beta > 0) d = select(d < beta, d * d * (0.5 / beta), d - 0.5 * beta);
    return {Reduced(reduction, d, in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    return {{SmoothL1Loss{}, {"float[4,5]", "float[4,5]"}},
            {SmoothL1Loss{LossReduction::kSum, 0.5}, {"float[3,7]", "float[3,1]"}},
            {SmoothL1Loss{LossReduction::kNone, 3}, {"float[19] edges", "float[19]"}},
            {SmoothL1Loss{.beta = 0}, {"f32[3]", "f32[3]"}},
            {SmoothL1Loss{}, {"f32[2,0]", "f32[2,0]"}},
            {SmoothL1Loss{.beta = -1}, {"f32[3]", "f32[3]"}, "beta -1 is below 0"},
            {SmoothL1Loss{}, {"f32[3]", "f32[4]"}, "do not broadcast"}};
  }
};
const OpDef& DefOf(const SmoothL1Loss*);

struct HuberLoss {
  LossReduction reduction = LossReduction::kMean;
  double delta = 1;

  static constexpr OpInfo kInfo{
      .name = "huber_loss",
      .formula =
          "y = d^2 / 2 where d = |x - target| is at most delta, else delta * (d - delta / 2)",
      .inputs = "x: float[*d]; target: =x[*e]",
      .outputs = "y: =x[*r]",
      .source = "torch.nn.functional.huber_loss"};
  static constexpr Field kFields[] = {
      FieldOf<&HuberLoss::reduction>("reduction", kLossReductionDoc, kLossReductions),
      FieldOf<&HuberLoss::delta>("delta", "Above 0.")};

  Values decompose(Function& f, ValueSpan in) const {
    if (!(delta > 0)) f.Fail(InvalidArgument("huber_loss: delta {} is not above 0", delta));
    const Value d = abs(Widened(in[0]) - Widened(in[1]));
    const Value y = select(d > delta, (d - 0.5 * delta) * delta, d * d * 0.5);
    return {Reduced(reduction, y, in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    return {{HuberLoss{}, {"float[4,5]", "float[4,5]"}},
            {HuberLoss{LossReduction::kSum, 0.5}, {"float[3,7]", "float[1,7]"}},
            {HuberLoss{LossReduction::kNone, 2.5}, {"float[19] edges", "float[19]"}},
            {HuberLoss{}, {"f32[0]", "f32[0]"}},
            {HuberLoss{.delta = 0}, {"f32[3]", "f32[3]"}, "delta 0 is not above 0"},
            {HuberLoss{}, {"f32[3]", "f32[4]"}, "do not broadcast"}};
  }
};
const OpDef& DefOf(const HuberLoss*);

}  // namespace forge::ir
