// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/creation/iota.h"
#include "ir/ops/decomposing.h"
#include "ir/ops/elementwise/elementwise.h"

namespace forge::ir {

struct OneHot {
  Dim depth = 0;
  int64_t axis = -1;

  static constexpr OpInfo kInfo{
      .name = "one_hot",
      .formula = "y[a.., i, b..] = values[1] where i is indices[a.., b..], else values[0]",
      .inputs = "indices: i32|i64[*i]; values: number|bool[2]",
      .outputs = "y: =values[*r]",
      .source = "ONNX OneHot-11; torch.nn.functional.one_hot"};
  static constexpr Field kFields[] = {
      FieldOf<&OneHot::depth>("depth",
                              "The extent of the new axis; negative indices count from "
                              "it, and those outside have values[0] only."),
      FieldOf<&OneHot::axis>("axis", "Where the new axis stands in y; negative from the end.")};

  Values decompose(Function& f, ValueSpan in) const {
    const int64_t rank = in[0].type().rank() + 1;
    const auto along = NormalAxis(axis, rank);
    if (!along.ok()) f.Fail(along.status());
    if (depth.max() < 0) f.Fail(InvalidArgument("one_hot: depth {} is below 0", depth.ToText()));
    if (!f.status().ok()) return {in[1]};
    const DType t = in[0].type().dtype();
    Dims shape = in[0].type().shape(), row(static_cast<size_t>(rank), 1);
    shape.insert(shape.begin() + *along, 1);
    row[static_cast<size_t>(*along)] = depth;
    const Value at = f(Reshape{shape}, {in[0]});
    const Value wrapped = select(at < 0.0, at + ScalarOf(f, depth, t), at);
    const Value order = f(Reshape{row}, {f(Iota{.dtype = t, .count = depth}, {})});
    const auto value = [&](int64_t i) {
      return f(Reshape{}, {f(Slice{.begin = {i}, .end = {i + 1}}, {in[1]})});
    };
    return {f(Select{}, {f(Equal{}, {wrapped, order}), value(1), value(0)})};
  }
  [[gnu::cold]] static Cases cases() {
    return {{OneHot{.depth = 5}, {"i64[2,3] in 0..4", "number|bool[2]"}},
            {OneHot{.depth = 4, .axis = 0}, {"i32[7] in -5..5", "f32[2]"}},
            {OneHot{.depth = 3, .axis = 1}, {"i64[2,3] in 0..2", "float[2]"}},
            {OneHot{.depth = 3}, {"i64[] in 0..2", "f32[2]"}},
            {OneHot{.depth = 0}, {"i64[3]", "f32[2]"}},
            {OneHot{.depth = 2}, {"i64[0,3]", "f32[2]"}},
            {OneHot{.depth = -1}, {"i64[3]", "f32[2]"}, "depth -1 is below 0"},
            {OneHot{.depth = 2, .axis = 2}, {"i64[3]", "f32[2]"}, "axis 2 is outside rank 2"},
            {OneHot{.depth = 2}, {"i64[3]", "f32[3]"}, "values"}};
  }
};
const OpDef& DefOf(const OneHot*);

}  // namespace forge::ir
