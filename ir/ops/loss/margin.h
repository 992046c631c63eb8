// SPDX-License-Identifier: Apache-2.0
// Losses of scores that lack a margin.
#pragma once
#include "ir/ops/creation/fill.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/loss/class_targets.h"
#include "ir/ops/loss/loss_reduction.h"

namespace forge::ir {

struct HingeEmbeddingLoss {
  LossReduction reduction = LossReduction::kMean;
  double margin = 1;

  static constexpr OpInfo kInfo{
      .name = "hinge_embedding_loss",
      .formula = "y = x for target 1, max(0, margin - x) for target -1, else both; reduced",
      .inputs = "x: float[*d]; target: =x[*e]",
      .outputs = "y: =x[*r]",
      .source = "torch.nn.functional.hinge_embedding_loss"};
  static constexpr Field kFields[] = {
      FieldOf<&HingeEmbeddingLoss::reduction>("reduction", kLossReductionDoc, kLossReductions),
      FieldOf<&HingeEmbeddingLoss::margin>("margin", "The x at which target -1 has no loss.")};

  Values decompose(Function& f, ValueSpan in) const {
    const Value x = Widened(in[0]), target = Widened(in[1]);
    const auto is = [&](double v) {
      return f(Equal{}, {target, f(Fill{.value = v, .dtype = target.type().dtype()}, {})});
    };
    const Value y = select(is(1), 0.0, max(margin - x, 0.0)) + select(is(-1), 0.0, x);
    return {Reduced(reduction, y, in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    using R = LossReduction;
    return {{HingeEmbeddingLoss{}, {"float[4,5]", "float[4,5] in 1..1"}},
            {HingeEmbeddingLoss{R::kSum, 2.5}, {"float[4,5]", "float[5] in -1..-1"}},
            {HingeEmbeddingLoss{R::kNone}, {"float[19] edges", "float[19] edges"}},
            {HingeEmbeddingLoss{}, {"f32[0]", "f32[0]"}},
            {HingeEmbeddingLoss{}, {"f32[]", "f32[]"}},
            {HingeEmbeddingLoss{}, {"f32[2]", "f32[3]"}, "do not broadcast"},
            {HingeEmbeddingLoss{}, {"f32[2]", "i64[2]"}, "target"}};
  }
};
const OpDef& DefOf(const HingeEmbeddingLoss*);

struct MarginRankingLoss {
  LossReduction reduction = LossReduction::kMean;
  double margin = 0;

  static constexpr OpInfo kInfo{.name = "margin_ranking_loss",
                                .formula = "y = max(0, -target * (a - b) + margin), reduced",
                                .inputs = "a: float[*d]; b: =a[*e]; target: =a[*t]",
                                .outputs = "y: =a[*r]",
                                .source = "torch.nn.functional.margin_ranking_loss"};
  static constexpr Field kFields[] = {
      FieldOf<&MarginRankingLoss::reduction>("reduction", kLossReductionDoc, kLossReductions),
      FieldOf<&MarginRankingLoss::margin>("margin", "By which the right one is to be greater.")};

  Values decompose(Function&, ValueSpan in) const {
    const Value d = Widened(in[0]) - Widened(in[1]);
    return {Reduced(reduction, max(margin - Widened(in[2]) * d, 0.0), in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    using R = LossReduction;
    return {{MarginRankingLoss{}, {"float[6]", "float[6]", "float[6] in 1..1"}},
            {MarginRankingLoss{R::kSum, 0.5}, {"float[3,4]", "float[3,4]", "float[3,4] in -1..-1"}},
            {MarginRankingLoss{R::kNone, 2}, {"float[19] edges", "float[19]", "float[19] in 1..1"}},
            {MarginRankingLoss{}, {"f32[0]", "f32[0]", "f32[0]"}},
            {MarginRankingLoss{}, {"f32[2]", "f32[2]", "f32[3]"}, "do not broadcast"},
            {MarginRankingLoss{}, {"f32[2]", "f32[2]"}, "target"}};
  }
};
const OpDef& DefOf(const MarginRankingLoss*);

struct SoftMarginLoss {
  LossReduction reduction = LossReduction::kMean;

  static constexpr OpInfo kInfo{.name = "soft_margin_loss",
                                .formula = "y = log(1 + e^(-target * x)), reduced",
                                .inputs = "x: float[*d]; target: =x[*e]",
                                .outputs = "y: =x[*r]",
                                .source = "torch.nn.functional.soft_margin_loss"};
  static constexpr Field kFields[] = {
      FieldOf<&SoftMarginLoss::reduction>("reduction", kLossReductionDoc, kLossReductions)};

  Values decompose(Function&, ValueSpan in) const {
    const Value y = -log_sigmoid(Widened(in[1]) * Widened(in[0]));
    return {Reduced(reduction, y, in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    using R = LossReduction;
    return {{SoftMarginLoss{}, {"float[4,5]", "float[4,5] in 1..1"}},
            {SoftMarginLoss{R::kSum}, {"float[4,5]", "float[4,5] in -1..-1"}},
            {SoftMarginLoss{R::kNone}, {"float[19] edges", "float[19] in 1..1"}},
            {SoftMarginLoss{}, {"f32[0]", "f32[0]"}},
            {SoftMarginLoss{}, {"f32[2]", "f32[3]"}, "do not broadcast"},
            {SoftMarginLoss{}, {"i32[2]", "i32[2]"}, "float"}};
  }
};
const OpDef& DefOf(const SoftMarginLoss*);

struct MultiMarginLoss {
  LossReduction reduction = LossReduction::kMean;
  int64_t p = 1;
  double margin = 1;

  static constexpr OpInfo kInfo{
      .name = "multi_margin_loss",
      .formula =
          "y = mean over classes j of weight[t] * max(0, margin - x[t] + x[j])^p, but 0 for "
          "j = t, the target; reduced",
      .inputs = "x: float[*d]; target: i32|i64[*t]; weight: =x[c]?",
      .outputs = "y: =x[*r]",
      .source = "torch.nn.functional.multi_margin_loss"};
  static constexpr Field kFields[] = {
      FieldOf<&MultiMarginLoss::reduction>("reduction", kLossReductionDoc, kLossReductions),
      FieldOf<&MultiMarginLoss::p>("p", "1 or 2."),
      FieldOf<&MultiMarginLoss::margin>("margin", "Of the target over the other classes.")};

  Values decompose(Function& f, ValueSpan in) const {
    if (p != 1 && p != 2) f.Fail(InvalidArgument("multi_margin_loss: p {} is not 1 or 2", p));
    if (in[0].type().rank() > 2)
      f.Fail(InvalidArgument("scores {} are no vectors", in[0].type().ToText()));
    const ClassTargets targets(f, in[0], in[1]);
    if (!f.status().ok()) return {in[0]};
    const Value x = Widened(in[0]), at = targets.Pick(x);
    Dims column = at.type().shape();
    column.push_back(1);
    const Value lack = max(x - f(Reshape{column}, {at}) + margin, 0.0);
    const Value other = select(targets.hit, 0.0, p == 1 ? lack : lack * lack);
    Value y = f(Reduce{.kind = ReduceKind::kMean, .axes = {-1}, .keep_dims = false}, {other});
    if (in[2]) y = y * targets.WeightsAt(in[2], targets.inside, x.type().dtype());
    return {Reduced(reduction, y, in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    using R = LossReduction;
    return {{MultiMarginLoss{}, {"float[4,5]", "i64[4] in 0..4"}},
            {MultiMarginLoss{R::kSum, 2, 0.5}, {"float[6,3]", "i32[6] in 0..2"}},
            {MultiMarginLoss{R::kNone}, {"float[6,3]", "i64[6] in 0..2", "float[3] in 0.5..2"}},
            {MultiMarginLoss{}, {"float[5]", "i64[] in 0..4"}},
            {MultiMarginLoss{}, {"f32[0,3]", "i64[0]"}},
            {MultiMarginLoss{.p = 3}, {"f32[4,5]", "i64[4]"}, "p 3 is not 1 or 2"},
            {MultiMarginLoss{}, {"f32[4,5,2]", "i64[4,2]"}, "are no vectors"},
            {MultiMarginLoss{}, {"f32[4,5]", "i64[5]"}, "are not the scores"}};
  }
};
const OpDef& DefOf(const MultiMarginLoss*);

struct MultiLabelMarginLoss {
  LossReduction reduction = LossReduction::kMean;

  static constexpr OpInfo kInfo{
      .name = "multilabel_margin_loss",
      .formula =
          "y = sum over targets t and classes i that are none of max(0, 1 - x[t] + x[i]) / "
          "c, reduced; targets end at the first that is negative",
      .inputs = "x: float[*d]; target: i32|i64[*t]",
      .outputs = "y: =x[*r]",
      .source = "torch.nn.functional.multilabel_margin_loss"};
  static constexpr Field kFields[] = {
      FieldOf<&MultiLabelMarginLoss::reduction>("reduction", kLossReductionDoc, kLossReductions)};

  // [n, t, i]: all pairs of a target and a class.
  Values decompose(Function& f, ValueSpan in) const {
    const Type &scores = in[0].type(), &targets = in[1].type();
    const bool vectors = scores.rank() == 1 || scores.rank() == 2;
    if (!vectors || !MayEqual(scores.shape(), targets.shape()))
      f.Fail(InvalidArgument("targets {} do not match scores {}, or these are no vectors",
                             targets.ToText(), scores.ToText()));
    if (!f.status().ok()) return {in[0]};
    const Dim classes = scores.shape().back();
    Dims rows = scores.shape(), columns = rows;
    rows.push_back(1);
    columns.insert(columns.end() - 1, 1);
    const Value x = Widened(in[0]), as_class = f(Reshape{columns}, {x});
    const DType t = targets.dtype();
    const auto over = [&](ReduceKind kind, int64_t axis, Value v) {
      return f(Reduce{.kind = kind, .axes = {axis}, .keep_dims = true}, {v});
    };
    const Value order = f(Iota{.dtype = t, .count = classes}, {});
    const Value count = ScalarOf(f, classes, t);
    const Value end = over(ReduceKind::kMin, -1, select(in[1] > -1.0, count, order));
    const Value counts = f(Reshape{rows}, {end > order});
    const Value hit = f(And{}, {counts, f(Equal{}, {f(Reshape{rows}, {in[1]}), order})});
    const Value at = over(ReduceKind::kSum, -1, select(hit, as_class, 0.0));
    const Value is_target = over(ReduceKind::kMax, -2, convert(hit, x.type().dtype())) > 0.0;
    const Value lack = select(is_target, 0.0, max(as_class - at + 1.0, 0.0));
    const Value each = over(ReduceKind::kMean, -1, select(counts, lack, 0.0));
    const Value y = f(Reduce{.axes = {-1, -2}, .keep_dims = false}, {each});
    return {Reduced(reduction, y, in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    using R = LossReduction;
    return {{MultiLabelMarginLoss{}, {"float[5,4]", "i64[5,4] in -1..3"}},
            {MultiLabelMarginLoss{R::kSum}, {"float[9,3]", "i64[9,3] in 0..2"}},
            {MultiLabelMarginLoss{R::kNone}, {"float[6,7]", "i32[6,7] in -1..6"}},
            {MultiLabelMarginLoss{}, {"float[6]", "i64[6] in -1..5"}},
            {MultiLabelMarginLoss{R::kNone}, {"f32[0,3]", "i64[0,3]"}},
            {MultiLabelMarginLoss{}, {"f32[2,3]", "i64[2]"}, "do not match"},
            {MultiLabelMarginLoss{}, {"f32[2,3,4]", "i64[2,3,4]"}, "are no vectors"}};
  }
};
const OpDef& DefOf(const MultiLabelMarginLoss*);

struct MultiLabelSoftMarginLoss {
  LossReduction reduction = LossReduction::kMean;

  static constexpr OpInfo kInfo{
      .name = "multilabel_soft_margin_loss",
      .formula =
          "y = -mean over the last axis of weight * (target * log(s) + (1 - target) * "
          "log(1 - s)), reduced; s = 1 / (1 + e^-x)",
      .inputs = "x: float[*d]; target: =x[*e]; weight: =x[*w]?",
      .outputs = "y: =x[*r]",
      .source = "torch.nn.functional.multilabel_soft_margin_loss"};
  static constexpr Field kFields[] = {FieldOf<&MultiLabelSoftMarginLoss::reduction>(
      "reduction", kLossReductionDoc, kLossReductions)};

  Values decompose(Function& f, ValueSpan in) const {
    const Value x = Widened(in[0]), target = Widened(in[1]);
    Value y = target * log_sigmoid(x) + (1.0 - target) * log_sigmoid(-x);
    if (in[2]) y = y * Widened(in[2]);
    y = -f(Reduce{.kind = ReduceKind::kMean, .axes = {-1}, .keep_dims = false}, {y});
    return {Reduced(reduction, y, in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    using Op = MultiLabelSoftMarginLoss;
    using R = LossReduction;
    return {{Op{}, {"float[4,5]", "float[4,5] in 0..1"}},
            {Op{R::kSum}, {"float[3,7]", "float[3,7] in 0..1", "float[7] in 0.5..2"}},
            {Op{R::kNone}, {"f32[3,20] edges", "f32[3,20] in 0..1"}},
            {Op{}, {"float[5]", "float[5] in 0..1"}},
            {Op{R::kNone}, {"f32[0,3]", "f32[0,3]"}},
            {Op{}, {"f32[]", "f32[]"}, "outside rank 0"},
            {Op{}, {"f32[2,3]", "f32[2,4]"}, "do not broadcast"}};
  }
};
const OpDef& DefOf(const MultiLabelSoftMarginLoss*);

}  // namespace forge::ir
