// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/reduction/arg_reduce.h"
#include "ir/ops/reduction/scan.h"
#include "ir/ops/sorting/order_statistics.h"

namespace forge::ir {

struct Mode {
  int64_t axis = -1;
  bool keep_dims = false;

  static constexpr OpInfo kInfo{
      .name = "mode",
      .formula =
          "the most frequent element along axis, the smallest of several, and the last "
          "index where it is; no NaN equals another",
      .inputs = "x: real[*d]",
      .outputs = "y: =x[*r]; index: i64[*r]",
      .source = "torch.mode"};
  static constexpr Field kFields[] = {
      FieldOf<&Mode::axis>("axis", "Negative counts from the end."),
      FieldOf<&Mode::keep_dims>("keep_dims", "Keeps the axis with extent 1.")};

  // The longest run of equal elements: each place counts from the last that begins one.
  Values decompose(Function& f, ValueSpan in) const {
    const auto sorted = SortedRows::Of(in[0], axis);
    if (!sorted) return {in[0], in[0]};
    const SortedRows& rows = *sorted;
    const Value place = rows.Places(DType::kI64);
    const Value others =
        f(Slice{.begin = {Dim(0)}, .end = {Dim(-1)}, .axes = {axis}}, {rows.values});
    const Value before = f(Concat{axis}, {rows.At(rows.values, 0), others});
    const Value begins = select(f(Equal{}, {rows.values, before}), 0.0, place);
    const Value run = place - f(Scan{.kind = ScanKind::kMax, .axis = axis}, {begins});
    const Value end = f(ArgReduce{.axis = axis}, {run});
    return {rows.Kept(rows.Pick(rows.values, end), keep_dims),
            rows.Kept(rows.Pick(rows.index, end), keep_dims)};
  }
  [[gnu::cold]] static Cases cases() {
    return {{Mode{}, {"int[3,9] in 0..3"}},
            {Mode{0, true}, {"int[8,2] in 0..2"}},
            {Mode{1}, {"float[2,6,3]"}},
            {Mode{-2}, {"f32[2,1,3]"}},
            {Mode{1}, {"f32[0,3]"}},
            {Mode{1}, {"f32[3,0]"}, "axis 1 of f32[3, 0] has no element"},
            {Mode{2}, {"f32[2,3]"}, "axis 2 is outside rank 2"}};
  }
};
const OpDef& DefOf(const Mode*);

}  // namespace forge::ir
