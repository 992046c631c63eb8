// SPDX-License-Identifier: Apache-2.0
// Rows of a table, found by their numbers.
#pragma once
#include <cmath>

#include "ir/ops/creation/fill.h"
#include "ir/ops/decomposing.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/indexing/index_arithmetic.h"

namespace forge::ir {

struct Embedding {
  int64_t padding = -1;
  bool scale_gradient = false;

  static constexpr OpInfo kInfo{
      .name = "embedding",
      .formula = "y[i.., j] = weight[indices[i..], j]",
      .inputs = "weight: float[n, d]; indices: i32|i64[*i]",
      .outputs = "y: =weight[*i, d]",
      .source = "torch.nn.functional.embedding; torch.ops.aten.embedding"};
  static constexpr Field kFields[] = {
      FieldOf<&Embedding::padding>("padding", "A row that gets no gradient; below 0: none."),
      FieldOf<&Embedding::scale_gradient>(
          "scale_gradient", "Divides the gradient of a row by the number of its indices.")};

  Values decompose(Function& f, ValueSpan in) const { return {f(Gather{}, {in[0], in[1]})}; }
  Values gradient(const GradArgs& g) const {
    const Dims& weight = g.in[0].type().shape();
    Value indices = g.in[1];
    const Value outside = DimValue(weight[0], indices);
    if (padding >= 0) {
      const Value row = g.fn(Fill{padding, indices.type().dtype(), {}}, {});
      indices = select(g.fn(Equal{}, {Wrapped(indices, weight[0]), row}), outside, indices);
    }
    const Value dw = AddedInto(weight, indices, g.dout[0], 0);
    if (!scale_gradient) return {dw, Value{}};
    const DType t = WideOf(dw.type().dtype());
    const Value ones = g.fn(Fill{1, t, {indices.type().elements()}}, {});
    const Value count = max(AddedInto({weight[0]}, indices, ones, 0), 1.0);
    const Value each = Widened(dw) / g.fn(Reshape{{weight[0], 1}}, {count});
    return {Narrowed(each, dw.type().dtype()), Value{}};
  }
  [[gnu::cold]] static Cases cases() {
    return {{Embedding{}, {"float[10,4]", "i64[2,5] in 0..9"}},
            {Embedding{.padding = 3}, {"f32[6,3]", "i32[20] in -6..5"}},
            {Embedding{.padding = 0, .scale_gradient = true}, {"f32[6,3]", "i64[4,5] in 0..5"}},
            {Embedding{.scale_gradient = true}, {"f32[6,3]", "i64[20] in 0..5"}},
            {Embedding{}, {"f32[6,3]", "i64[] in 0..5"}},
            {Embedding{}, {"f32[6,3]", "i64[2,0]"}},
            {Embedding{}, {"f32[6,1]", "i64[7] in -9..9"}},
            {Embedding{}, {"f32[6]", "i64[7]"}, "weight"},
            {Embedding{}, {"f32[6,3]", "f32[7]"}, "indices"}};
  }
};
const OpDef& DefOf(const Embedding*);

struct EmbeddingRenorm {
  double max_norm = 1, norm = 2;

  static constexpr OpInfo kInfo{
      .name = "embedding_renorm",
      .formula =
          "y is weight, but rows that indices select are scaled by max_norm / (n + 1e-7) "
          "where their norm n is larger than max_norm",
      .inputs = "weight: float[n, d]; indices: i32|i64[*i]",
      .outputs = "y: =weight",
      .source = "torch.ops.aten.embedding_renorm_"};
  static constexpr Field kFields[] = {
      FieldOf<&EmbeddingRenorm::max_norm>("max_norm", "The largest norm that stays."),
      FieldOf<&EmbeddingRenorm::norm>("norm",
                                      "p of the norm (sum |w|^p)^(1 / p); may be infinite.")};

  Values decompose(Function& f, ValueSpan in) const {
    const Type& weight = in[0].type();
    const Value flat = f(Reshape{{in[1].type().elements()}}, {in[1]});
    const Value rows = Widened(f(Gather{}, {in[0], flat})), size = abs(rows);
    const auto number = [&](double v) { return f(Fill{v, rows.type().dtype(), {}}, {}); };
    const auto sum = [&](Value v) { return ReduceAxes(ReduceKind::kSum, v, {1}); };
    const Value n = norm == 2          ? sqrt(sum(rows * rows))
                    : norm == 1        ? sum(size)
                    : std::isinf(norm) ? ReduceAxes(ReduceKind::kMax, size, {1})
                                       : pow(sum(pow(size, number(norm))), number(1 / norm));
    const Value scale = select(n > max_norm, max_norm / (n + 1e-7), number(1));
    const Value scaled = Narrowed(rows * scale, weight.dtype());
    return {f(Scatter{0}, {in[0], OnAxis(flat, 0, 2), scaled})};
  }
  [[gnu::cold]] static Cases cases() {
    return {{EmbeddingRenorm{}, {"float[6,4]", "i64[2,3] in 0..5"}},
            {EmbeddingRenorm{.max_norm = 2, .norm = 1}, {"float[6,3]", "i32[9] in -6..5"}},
            {EmbeddingRenorm{.max_norm = 3, .norm = 3}, {"f32[6,3]", "i64[3] in 0..5"}},
            {EmbeddingRenorm{.norm = std::numeric_limits<double>::infinity()},
             {"f32[6,3]", "i64[3] in 0..5"}},
            {EmbeddingRenorm{}, {"f32[6,3]", "i64[0]"}},
            {EmbeddingRenorm{}, {"f32[6]", "i64[7]"}, "weight"}};
  }
};
const OpDef& DefOf(const EmbeddingRenorm*);

}  // namespace forge::ir
