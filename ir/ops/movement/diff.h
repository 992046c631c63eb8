// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/decomposing.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/movement/concat.h"

namespace forge::ir {

struct Diff {
  int64_t n = 1, axis = -1;

  static constexpr OpInfo kInfo{
      .name = "diff",
      .formula = "y[i] = x[i + 1] - x[i] along axis, n times; of bools, whether they differ",
      .inputs = "x: number|bool[*d]; prepend: =x[*p]?; append: =x[*a]?",
      .outputs = "y: =x[*r]",
      .source = "torch.diff"};
  static constexpr Field kFields[] = {
      FieldOf<&Diff::n>("n", "At least 0."),
      FieldOf<&Diff::axis>("axis", "Negative counts from the end.")};

  // The other operands stand before and behind x, unless n is 0.
  Values decompose(Function& f, ValueSpan in) const {
    const auto along = NormalAxis(axis, in[0].type().rank());
    if (!along.ok()) f.Fail(along.status());
    if (n < 0) f.Fail(InvalidArgument("diff: n {} is below 0", n));
    if (!f.status().ok() || !CanWriteOut(f, n)) return {in[0]};
    Values all;
    for (size_t i : {1, 0, 2})
      if (in[i] && (i == 0 || n > 0)) all.push_back(in[i]);
    Value y = f.Add(Concat{.axis = *along}, all)[0];
    if (f.status().ok() && n > 1) y = Widened(y);
    for (int64_t i = 0; i < n && f.status().ok(); ++i) {
      const Dim extent = y.type().shape()[static_cast<size_t>(*along)];
      const auto part = [&](const Dim& begin, const Dim& end) {
        return f(Slice{.begin = {begin}, .end = {end}, .axes = {*along}}, {y});
      };
      const Value next = part(1, Max(extent, 1)), now = part(0, Max(extent, 1) - 1);
      const bool truth = in[0].type().dtype() == DType::kBool;
      y = truth ? f(Xor{}, {next, now}) : next - now;
    }
    return {f.status().ok() ? Narrowed(y, in[0].type().dtype()) : y};
  }
  [[gnu::cold]] static Cases cases() {
    return {{Diff{}, {"number|bool[3,5]"}},
            {Diff{.n = 2}, {"complex[2,5]", "complex[2,1]"}},
            {Diff{.n = 2, .axis = 0}, {"float[4,3]"}},
            {Diff{.n = 2, .axis = 0}, {"float[4,9]"}},
            {Diff{.axis = 1}, {"float[2,3]", "float[2,1]", "float[2,2]"}},
            {Diff{.n = 3}, {"f32[4]", "", "f32[1]"}},
            {Diff{.n = 5}, {"f32[3]"}},
            {Diff{.n = 0}, {"f32[3]"}},
            {Diff{.n = 0}, {"f64[3]", "f64[1]", "f64[2]"}},
            {Diff{}, {"f32[0]"}},
            {Diff{}, {"f32[1,1]"}},
            {Diff{.n = -1}, {"f32[3]"}, "n -1 is below 0"},
            {Diff{}, {"f32[]"}, "axis -1 is outside rank 0"},
            {Diff{}, {"f32[3,2]", "f32[2,2]"}, "3"}};
  }
};
const OpDef& DefOf(const Diff*);

}  // namespace forge::ir
