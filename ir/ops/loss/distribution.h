// SPDX-License-Identifier: Apache-2.0
// Losses of the parameters of a distribution.
#pragma once
#include <numbers>

#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/loss/loss_reduction.h"

namespace forge::ir {

struct KlDivergence {
  LossReduction reduction = LossReduction::kMean;
  bool log_target = false;

  static constexpr OpInfo kInfo{
      .name = "kl_div",
      .formula = "y = target * (log(target) - x), reduced, 0 for target 0; x is a logarithm",
      .inputs = "x: float[*d]; target: =x[*e]",
      .outputs = "y: =x[*r]",
      .source = "torch.nn.functional.kl_div"};
  static constexpr Field kFields[] = {
      FieldOf<&KlDivergence::reduction>("reduction",
                                        "All losses, their mean, their sum, or the sum divided by "
                                        "the extent of axis 0.",
                                        "none|mean|sum|batchmean"),
      FieldOf<&KlDivergence::log_target>("log_target", "The target is a logarithm, too.")};

  Values decompose(Function& f, ValueSpan in) const {
    const Value x = Widened(in[0]), target = Widened(in[1]);
    if (log_target) return {Reduced(reduction, exp(target) * (target - x), in[0].type().dtype())};
    const Value zero = f(Fill{.value = 0, .dtype = target.type().dtype()}, {});
    const Value positive = select(f(Equal{}, {target, zero}), 1.0, target);
    return {Reduced(reduction, target * log(positive) - target * x, in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    using R = LossReduction;
    return {{KlDivergence{}, {"float[4,5]", "float[4,5] in 0.1..1"}},
            {KlDivergence{R::kBatchMean}, {"float[4,5]", "float[4,5] in 0.1..1"}},
            {KlDivergence{R::kBatchMean, true}, {"float[3,2,4]", "float[4]"}},
            {KlDivergence{R::kSum}, {"float[3,7]", "float[3,1] in 0.1..1"}},
            {KlDivergence{R::kNone}, {"f32[3,7]", "f32[3,7] in 0..0"}},
            {KlDivergence{R::kNone, true}, {"float[19]", "float[19] edges"}},
            {KlDivergence{}, {"f32[0,3]", "f32[0,3]"}},
            {KlDivergence{R::kBatchMean}, {"f32[]", "f32[]"}, "a scalar has no batch"},
            {KlDivergence{}, {"f32[2]", "f32[3]"}, "do not broadcast"}};
  }
};
const OpDef& DefOf(const KlDivergence*);

struct PoissonNllLoss {
  LossReduction reduction = LossReduction::kMean;
  bool log_input = true, full = false;
  double epsilon = 1e-8;

  static constexpr OpInfo kInfo{
      .name = "poisson_nll_loss",
      .formula = "y = e^x - target * x, or x - target * log(x + epsilon), reduced",
      .inputs = "x: float[*d]; target: =x[*e]",
      .outputs = "y: =x[*r]",
      .source = "torch.nn.functional.poisson_nll_loss"};
  static constexpr Field kFields[] = {
      FieldOf<&PoissonNllLoss::reduction>("reduction", kLossReductionDoc, kLossReductions),
      FieldOf<&PoissonNllLoss::log_input>("log_input", "x is the logarithm of the rate."),
      FieldOf<&PoissonNllLoss::full>("full",
                                     "Adds Stirling's approximation of log(target!) where target "
                                     "is above 1."),
      FieldOf<&PoissonNllLoss::epsilon>("epsilon", "Added to a rate before its logarithm.")};

  Values decompose(Function&, ValueSpan in) const {
    const Value x = Widened(in[0]), target = Widened(in[1]);
    Value y = log_input ? exp(x) - target * x : x - target * log(x + epsilon);
    if (full) {
      const Value many = target > 1.0, t = select(many, target, 1.0);
      const Value half_log = log(t * (2 * std::numbers::pi)) * 0.5;
      y = y + select(many, t * log(t) - t + half_log, 0.0);
    }
    return {Reduced(reduction, y, in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    using R = LossReduction;
    return {{PoissonNllLoss{}, {"float[4,5]", "float[4,5] in 0..5"}},
            {PoissonNllLoss{R::kSum, false, true}, {"float[3,7] in 0.1..4", "float[7] in 0..5"}},
            {PoissonNllLoss{R::kNone, true, true}, {"float[19]", "float[19] in 0..9"}},
            {PoissonNllLoss{.reduction = R::kNone, .log_input = false, .epsilon = 0.5},
             {"float[5] in 0..4", "float[5] in 0..4"}},
            {PoissonNllLoss{R::kNone}, {"f32[19] edges", "f32[19]"}},
            {PoissonNllLoss{}, {"f32[0]", "f32[0]"}},
            {PoissonNllLoss{}, {"f32[2]", "f32[3]"}, "do not broadcast"},
            {PoissonNllLoss{}, {"i64[2]", "i64[2]"}, "float"}};
  }
};
const OpDef& DefOf(const PoissonNllLoss*);

struct GaussianNllLoss {
  LossReduction reduction = LossReduction::kMean;
  bool full = false;
  double epsilon = 1e-6;

  static constexpr OpInfo kInfo{
      .name = "gaussian_nll_loss",
      .formula = "y = (log(v) + (x - target)^2 / v) / 2, reduced; v = max(variance, epsilon)",
      .inputs = "x: float[*d]; target: =x[*e]; variance: =x[*v]",
      .outputs = "y: =x[*r]",
      .source = "torch.nn.functional.gaussian_nll_loss"};
  static constexpr Field kFields[] = {
      FieldOf<&GaussianNllLoss::reduction>("reduction", kLossReductionDoc, kLossReductions),
      FieldOf<&GaussianNllLoss::full>("full", "Adds log(2 pi) / 2."),
      FieldOf<&GaussianNllLoss::epsilon>("epsilon", "The least variance.")};

  // A variance that lacks the last axis is the same along it.
  Values decompose(Function& f, ValueSpan in) const {
    Value variance = Widened(in[2]);
    Dims shape = in[2].type().shape();
    const Dims& whole = in[0].type().shape();
    if (shape.size() + 1 == whole.size() && std::equal(shape.begin(), shape.end(), whole.begin())) {
      shape.push_back(1);
      variance = f(Reshape{shape}, {variance});
    }
    const Value d = Widened(in[0]) - Widened(in[1]), v = max(variance, epsilon);
    Value y = (log(v) + d * d / v) * 0.5;
    if (full) y = y + 0.5 * std::log(2 * std::numbers::pi);
    return {Reduced(reduction, y, in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    using R = LossReduction;
    const std::string some = " in 0.2..3";
    return {
        {GaussianNllLoss{}, {"float[4,5]", "float[4,5]", "float[4,5]" + some}},
        {GaussianNllLoss{R::kSum, true}, {"float[3,7]", "float[3,7]", "float[3]" + some}},
        {GaussianNllLoss{R::kNone, false, 0.5}, {"float[3,7]", "float[3,7]", "float[3,1]" + some}},
        {GaussianNllLoss{}, {"f32[5]", "f32[5]", "f32[]" + some}},
        {GaussianNllLoss{R::kNone}, {"f32[3]", "f32[3]", "f32[3] in 0..0"}},
        {GaussianNllLoss{}, {"f32[0]", "f32[0]", "f32[0]"}},
        {GaussianNllLoss{}, {"f32[2,3]", "f32[2,3]", "f32[2,2]"}, "do not broadcast"},
        {GaussianNllLoss{}, {"f32[2]", "f32[2]"}, "variance"}};
  }
};
const OpDef& DefOf(const GaussianNllLoss*);

}  // namespace forge::ir
