// SPDX-License-Identifier: Apache-2.0
// Diagonals and triangles of matrices.
#pragma once
#include "ir/ops/creation/fill.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/decomposing.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/movement/pad.h"
#include "ir/ops/movement/transpose.h"

namespace forge::ir {

struct Triangle {
  bool upper = false;
  int64_t diagonal = 0;

  static constexpr OpInfo kInfo{
      .name = "triangle",
      .formula =
          "y[.., i, j] = x[.., i, j] where j - i is at most diagonal (upper: at least), else "
          "0",
      .inputs = "x: number|bool[*d, m, n]",
      .outputs = "y: =x",
      .source = "ONNX Trilu-14; torch.tril, torch.triu"};
  static constexpr Field kFields[] = {
      FieldOf<&Triangle::upper>("upper", "Keeps the other side of the diagonal."),
      FieldOf<&Triangle::diagonal>("diagonal", "Above 0: above the main diagonal.")};

  Values decompose(Function& f, ValueSpan in) const {
    const Type& x = in[0].type();
    const Dim rows = x.shape()[static_cast<size_t>(x.rank() - 2)], columns = x.shape().back();
    const Value j = f(Iota{.begin = 0 - Dim(diagonal), .count = columns}, {});
    const Value i = f(Reshape{{rows, 1}}, {f(Iota{.count = rows}, {})});
    const Value keep = f(GreaterEqual{}, {upper ? j : i, upper ? i : j});
    return {f(Select{}, {keep, in[0], f(Fill{.value = 0, .dtype = x.dtype()}, {})})};
  }
  [[gnu::cold]] static Cases cases() {
    return {{Triangle{}, {"number|bool[3,4]"}},
            {Triangle{.upper = true}, {"float[2,5,3]"}},
            {Triangle{.upper = true, .diagonal = 2}, {"float[4,4]"}},
            {Triangle{.diagonal = -3}, {"f32[5,2]"}},
            {Triangle{.diagonal = 9}, {"f32[2,3]"}},
            {Triangle{}, {"f32[3,19] edges"}},
            {Triangle{}, {"f32[2,0,3]"}},
            {Triangle{}, {"f32[1,1]"}},
            {.op = Triangle{}, .in = {"f32[8,1024,1024]"}, .bench = true},
            {Triangle{}, {"f32[3]"}, "rank"},
            {Triangle{}, {"f32[]"}, "rank"}};
  }
};
const OpDef& DefOf(const Triangle*);

struct Diagonal {
  int64_t offset = 0, axis1 = 0, axis2 = 1;

  static constexpr OpInfo kInfo{.name = "diagonal",
                                .formula = "y[.., i] = x at i of axis1 and i + offset of axis2",
                                .inputs = "x: number|bool[*d]",
                                .outputs = "y: =x[*r]",
                                .source = "torch.diagonal"};
  static constexpr Field kFields[] = {
      FieldOf<&Diagonal::offset>("offset", "Below 0: below the main diagonal."),
      FieldOf<&Diagonal::axis1>("axis1", "Negative counts from the end."),
      FieldOf<&Diagonal::axis2>("axis2", "Another axis; likewise.")};

  // Rows of n elements as rows of n + 1: the diagonal becomes the first column.
  Values decompose(Function& f, ValueSpan in) const {
    const int64_t rank = in[0].type().rank();
    const auto both = NormalAxes(std::array{axis1, axis2}, rank);
    if (!both.ok()) return f.Fail(both.status()), Values{in[0]};
    const int64_t a = *NormalAxis(axis1, rank), b = *NormalAxis(axis2, rank);
    Transpose last;
    Dims lead;
    for (int64_t i = 0; i < rank; ++i) {
      if (i == a || i == b) continue;
      last.permutation.push_back(i);
      lead.push_back(in[0].type().shape()[static_cast<size_t>(i)]);
    }
    last.permutation.insert(last.permutation.end(), {a, b});
    const Dims& shape = in[0].type().shape();
    const Dim top = std::max<int64_t>(0, -offset), left = std::max<int64_t>(0, offset);
    const Dim n =
        Max(0, Min(shape[static_cast<size_t>(a)] - top, shape[static_cast<size_t>(b)] - left));
    const auto with = [&](std::initializer_list<Dim> more) {
      Dims out = lead;
      out.insert(out.end(), more);
      return out;
    };
    const Value square =
        f(Slice{{top, left}, {top + n, left + n}, {rank - 2, rank - 1}}, {f(last, {in[0]})});
    Pad pad{.before = Dims(lead.size() + 1, 0), .after = Dims(lead.size() + 1, 0)};
    pad.after.back() = n;
    const Value longer = f(pad, {f(Reshape{with({n * n})}, {square})});
    const Value slanted = f(Reshape{with({n, n + 1})}, {longer});
    const Value column = f(Slice{.begin = {0}, .end = {1}, .axes = {rank - 1}}, {slanted});
    return {f(Reshape{with({n})}, {column})};
  }
  [[gnu::cold]] static Cases cases() {
    return {{Diagonal{}, {"number|bool[3,4]"}},
            {Diagonal{.offset = 1}, {"float[5,3]"}},
            {Diagonal{.offset = -2, .axis1 = -1, .axis2 = 0}, {"float[4,2,5]"}},
            {Diagonal{.axis1 = 1, .axis2 = 3}, {"f32[2,3,1,4,2]"}},
            {Diagonal{.offset = 7}, {"f32[3,3]"}},
            {Diagonal{}, {"f32[0,3]"}},
            {Diagonal{}, {"f32[1,1]"}},
            {Diagonal{.axis2 = 0}, {"f32[3,3]"}, "given twice"},
            {Diagonal{}, {"f32[3]"}, "axis 1 is outside rank 1"}};
  }
};
const OpDef& DefOf(const Diagonal*);

}  // namespace forge::ir
