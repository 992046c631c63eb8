// SPDX-License-Identifier: Apache-2.0
// Distances of vectors, and losses of them.
#pragma once
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/loss/loss_reduction.h"
#include "ir/ops/movement/broadcast_to.h"
#include "ir/ops/reduction/vector_norm.h"

namespace forge::ir {

struct PairwiseDistance {
  double p = 2, epsilon = 1e-6;
  bool keep_dims = false;

  static constexpr OpInfo kInfo{.name = "pairwise_distance",
                                .formula = "y = vector_norm(a - b + epsilon) along the last axis",
                                .inputs = "a: float[*d]; b: =a[*e]",
                                .outputs = "y: =a[*r]",
                                .source = "torch.nn.functional.pairwise_distance"};
  static constexpr Field kFields[] = {
      FieldOf<&PairwiseDistance::p>("p", "As of `vector_norm`."),
      FieldOf<&PairwiseDistance::epsilon>("epsilon", "Added to each difference."),
      FieldOf<&PairwiseDistance::keep_dims>("keep_dims", "Keeps the last axis with extent 1.")};

  Values decompose(Function& f, ValueSpan in) const {
    const Value d = Widened(in[0]) - Widened(in[1]) + epsilon;
    const Value y = f(VectorNorm{.p = p, .axes = {-1}, .keep_dims = keep_dims}, {d});
    return {f.status().ok() ? Narrowed(y, in[0].type().dtype()) : y};
  }
  [[gnu::cold]] static Cases cases() {
    return {{PairwiseDistance{}, {"float[4,8]", "float[4,8]"}},
            {PairwiseDistance{.p = 1, .keep_dims = true}, {"float[2,3,5]", "float[3,5]"}},
            {PairwiseDistance{.p = 3, .epsilon = 0.25}, {"float[7]", "float[7]"}},
            {PairwiseDistance{}, {"f32[0,3]", "f32[0,3]"}},
            {PairwiseDistance{}, {"f32[19] edges", "f32[19]"}},
            {PairwiseDistance{}, {"f32[]", "f32[]"}, "outside rank 0"},
            {PairwiseDistance{}, {"f32[2,3]", "f32[2,4]"}, "do not broadcast"}};
  }
};
const OpDef& DefOf(const PairwiseDistance*);

struct CosineSimilarity {
  int64_t axis = 1;
  double epsilon = 1e-8;

  static constexpr OpInfo kInfo{
      .name = "cosine_similarity",
      .formula = "y = sum(a * b) / (max(|a|, epsilon) * max(|b|, epsilon)) along axis",
      .inputs = "a: float[*d]; b: =a[*e]",
      .outputs = "y: =a[*r]",
      .source = "torch.nn.functional.cosine_similarity"};
  static constexpr Field kFields[] = {
      FieldOf<&CosineSimilarity::axis>("axis", "Of a * b; negative counts from the end."),
      FieldOf<&CosineSimilarity::epsilon>("epsilon", "The least norm of a vector.")};

  // The axis is that of the product, so both operands have its rank first.
  Values decompose(Function& f, ValueSpan in) const {
    const int64_t rank = std::max(in[0].type().rank(), in[1].type().rank());
    const absl::StatusOr<int64_t> along = NormalAxis(axis, rank);
    if (!along.ok()) return f.Fail(along.status()), Values{in[0]};
    const auto spread = [&](Value v) {
      Dims shape = v.type().shape();
      shape.insert(shape.begin(), static_cast<size_t>(rank) - shape.size(), 1);
      return f(Reshape{shape}, {Widened(v)});
    };
    const auto sum = [&](Value v) { return f(Reduce{.axes = {*along}, .keep_dims = false}, {v}); };
    const Value a = spread(in[0]), b = spread(in[1]), product = a * b;
    if (!f.status().ok()) return {product};
    const auto norm = [&](Value v) {
      const Value all = f(BroadcastTo{product.type().shape()}, {v});
      return max(RootOf(sum(all * all)), epsilon);
    };
    const Value y = sum(product) / (norm(a) * norm(b));
    return {f.status().ok() ? Narrowed(y, in[0].type().dtype()) : y};
  }
  [[gnu::cold]] static Cases cases() {
    return {
        {CosineSimilarity{}, {"float[4,8]", "float[4,8]"}},
        {CosineSimilarity{.axis = -1, .epsilon = 0.5}, {"float[2,3,5]", "float[3,5] in -0.1..0.1"}},
        {CosineSimilarity{.axis = 0}, {"float[7]", "float[7]"}},
        {CosineSimilarity{}, {"f32[3,5]", "f32[3,5] in 0..0"}},
        {CosineSimilarity{}, {"f32[0,3]", "f32[0,3]"}},
        {CosineSimilarity{}, {"f32[3]", "f32[3]"}, "axis 1 is outside rank 1"},
        {CosineSimilarity{}, {"f32[2,3]", "f32[2,4]"}, "do not broadcast"}};
  }
};
const OpDef& DefOf(const CosineSimilarity*);

struct TripletMarginLoss {
  LossReduction reduction = LossReduction::kMean;
  double margin = 1, p = 2, epsilon = 1e-6;
  bool swap = false;

  static constexpr OpInfo kInfo{
      .name = "triplet_margin_loss",
      .formula =
          "y = max(0, d(anchor, positive) - d(anchor, negative) + margin), reduced; d is "
          "pairwise_distance",
      .inputs = "anchor: float[*a]; positive: =anchor[*b]; negative: =anchor[*c]",
      .outputs = "y: =anchor[*r]",
      .source = "torch.nn.functional.triplet_margin_loss"};
  static constexpr Field kFields[] = {
      FieldOf<&TripletMarginLoss::reduction>("reduction", kLossReductionDoc, kLossReductions),
      FieldOf<&TripletMarginLoss::margin>("margin", "Of one distance over the other."),
      FieldOf<&TripletMarginLoss::p>("p", "As of `vector_norm`."),
      FieldOf<&TripletMarginLoss::epsilon>("epsilon", "Added to each difference."),
      FieldOf<&TripletMarginLoss::swap>("swap",
                                        "Takes d(positive, negative) instead where it is less.")};

  Values decompose(Function& f, ValueSpan in) const {
    const auto distance = [&](size_t i, size_t j) {
      return f(PairwiseDistance{.p = p, .epsilon = epsilon}, {Widened(in[i]), Widened(in[j])});
    };
    const Value near = distance(0, 1), other = distance(0, 2);
    const Value far = swap ? min(other, distance(1, 2)) : other;
    return {Reduced(reduction, max(near - far + margin, 0.0), in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    using Op = TripletMarginLoss;
    using R = LossReduction;
    return {{Op{}, {"float[4,8]", "float[4,8]", "float[4,8]"}},
            {Op{R::kSum, 0.5, 1, 1e-6, true}, {"float[4,8]", "float[4,8]", "float[4,8]"}},
            {Op{R::kNone, 2, 3, 0.25}, {"float[2,3,5]", "float[2,3,5]", "float[2,3,5]"}},
            {Op{}, {"f32[8]", "f32[8]", "f32[8]"}},
            {Op{}, {"f32[0,8]", "f32[0,8]", "f32[0,8]"}},
            {Op{}, {"f32[4,8]", "f32[4,8]", "f32[4,7]"}, "do not broadcast"},
            {Op{}, {"f32[]", "f32[]", "f32[]"}, "outside rank 0"}};
  }
};
const OpDef& DefOf(const TripletMarginLoss*);

struct CosineEmbeddingLoss {
  LossReduction reduction = LossReduction::kMean;
  double margin = 0;

  static constexpr OpInfo kInfo{
      .name = "cosine_embedding_loss",
      .formula =
          "y = 1 - cos(a, b) for target 1, max(0, cos(a, b) - margin) for target -1, reduced",
      .inputs = "a: float[*d]; b: =a[*e]; target: =a[*t]",
      .outputs = "y: =a[*r]",
      .source = "torch.nn.functional.cosine_embedding_loss"};
  static constexpr Field kFields[] = {
      FieldOf<&CosineEmbeddingLoss::reduction>("reduction", kLossReductionDoc, kLossReductions),
      FieldOf<&CosineEmbeddingLoss::margin>("margin",
                                            "The cosine at which target -1 has no loss.")};

  Values decompose(Function& f, ValueSpan in) const {
    constexpr double kLeast = 1e-12;  // added to squared norms, as by PyTorch
    const Value a = Widened(in[0]), b = Widened(in[1]), target = Widened(in[2]);
    const auto sum = [&](Value v) { return f(Reduce{.axes = {-1}, .keep_dims = false}, {v}); };
    const auto is = [&](double v) {
      return f(Equal{}, {target, f(Fill{.value = v, .dtype = target.type().dtype()}, {})});
    };
    const Value cosine = sum(a * b) / sqrt((sum(a * a) + kLeast) * (sum(b * b) + kLeast));
    const Value apart = select(is(-1), max(cosine - margin, 0.0), 0.0);
    return {Reduced(reduction, select(is(1), 1.0 - cosine, apart), in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    using Op = CosineEmbeddingLoss;
    using R = LossReduction;
    return {{Op{}, {"float[4,8]", "float[4,8]", "float[4] in 1..1"}},
            {Op{R::kSum, 0.2}, {"float[5,3]", "float[5,3]", "float[5] in -1..-1"}},
            {Op{R::kNone}, {"float[6]", "float[6]", "float[] in -1..-1"}},
            {Op{R::kNone}, {"f32[7,4]", "f32[7,4]", "f32[7] edges"}},
            {Op{}, {"f32[0,4]", "f32[0,4]", "f32[0]"}},
            {Op{}, {"f32[4,8]", "f32[4,8]", "f32[3]"}, "do not broadcast"},
            {Op{}, {"f32[]", "f32[]", "f32[]"}, "outside rank 0"}};
  }
};
const OpDef& DefOf(const CosineEmbeddingLoss*);

}  // namespace forge::ir
