// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/reduction/arg_reduce.h"
#include "ir/ops/sorting/order_statistics.h"

namespace forge::ir {

struct Median {
  int64_t axis = -1;
  bool keep_dims = false, skip_nan = false;

  static constexpr OpInfo kInfo{
      .name = "median",
      .formula = "the lower median along axis, and its index; of a row with NaN the first NaN",
      .inputs = "x: real[*d]",
      .outputs = "y: =x[*r]; index: i64[*r]",
      .source = "torch.median, nanmedian"};
  static constexpr Field kFields[] = {
      FieldOf<&Median::axis>("axis", "Negative counts from the end."),
      FieldOf<&Median::keep_dims>("keep_dims", "Keeps the axis with extent 1."),
      FieldOf<&Median::skip_nan>("skip_nan", "Of the elements that are numbers.")};

  Values decompose(Function& f, ValueSpan in) const {
    const auto sorted = SortedRows::Of(in[0], axis);
    if (!sorted) return {in[0], in[0]};
    const SortedRows& rows = *sorted;
    const Dim middle = FloorDiv(rows.extent - 1, 2);
    Value y, index;
    if (skip_nan) {
      const Value place = max((rows.Numbers(DType::kI64) - 1.0) / 2.0, 0.0);
      y = rows.Pick(rows.values, place), index = rows.Pick(rows.index, place);
    } else {
      const Value at = rows.At(rows.index, middle);
      y = rows.UnlessNan(rows.At(rows.values, middle));
      const Value first = f(ArgReduce{.axis = axis}, {in[0]});  // NaN, if there is one
      index = Has(kFloatTypes, y.type().dtype()) ? select(f(Equal{}, {y, y}), at, first) : at;
    }
    return {rows.Kept(y, keep_dims), rows.Kept(index, keep_dims)};
  }
  [[gnu::cold]] static Cases cases() {
    return {{Median{}, {"real[3,7] in -20..20"}},
            {Median{0, true}, {"real[4,3] in 0..20"}},
            {Median{}, {"float[2,37] edges"}},
            {Median{-1, false, true}, {"real[2,38] edges"}},
            {Median{1, true, true}, {"float[2,6,3]"}},
            {Median{-2}, {"f32[2,1,3]"}},
            {Median{1}, {"f32[0,3]"}},
            {Median{1}, {"f32[3,0]"}, "axis 1 of f32[3, 0] has no element"},
            {Median{2}, {"f32[2,3]"}, "axis 2 is outside rank 2"}};
  }
};
const OpDef& DefOf(const Median*);

}  // namespace forge::ir
