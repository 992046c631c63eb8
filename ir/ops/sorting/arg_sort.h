// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/decomposing.h"
#include "ir/ops/sorting/sort.h"

namespace forge::ir {

struct ArgSort {
  int64_t axis = -1;
  bool descending = false;

  static constexpr OpInfo kInfo{.name = "arg_sort",
                                .formula = "the index of sort: where its elements were",
                                .inputs = "x: ordered[*d]",
                                .outputs = "y: i64[*d]",
                                .source = "torch.argsort, stable"};
  static constexpr Field kFields[] = {
      FieldOf<&ArgSort::axis>("axis", "Negative counts from the end."),
      FieldOf<&ArgSort::descending>("descending", "The largest element comes first.")};

  Values decompose(Function& f, ValueSpan in) const {
    return {f.Add(Sort{axis, descending}, in)[1]};
  }
  static constexpr Zero gradient{};
  [[gnu::cold]] static Cases cases() {
    return {{ArgSort{}, {"ordered[3,7] in -2..2"}},
            {ArgSort{0, true}, {"ordered[9,2] in 0..3"}},
            {ArgSort{-1, true}, {"ordered[2,37] edges"}},
            {ArgSort{}, {"f32[0,4]"}},
            {ArgSort{.axis = -2}, {"f32[1,2]"}},
            {ArgSort{.axis = 1}, {"f32[3]"}, "axis 1 is outside rank 1"},
            {ArgSort{}, {"c64[3]"}, "x"}};
  }
};
const OpDef& DefOf(const ArgSort*);

struct MSort {
  static constexpr OpInfo kInfo{.name = "msort",
                                .formula = "x in order along the first axis",
                                .inputs = "x: ordered[n, *d]",
                                .outputs = "y: =x",
                                .source = "torch.msort"};
  Values decompose(Function& f, ValueSpan in) const { return {f.Add(Sort{0}, in)[0]}; }
  [[gnu::cold]] static Cases cases() {
    return {{MSort{}, {"ordered[7,3] in -2..2"}},
            {MSort{}, {"float[40] edges"}},
            {MSort{}, {"f32[0,3]"}},
            {MSort{}, {"f32[1]"}},
            {MSort{}, {"f32[]"}, "x"},
            {MSort{}, {"c64[3]"}, "x"}};
  }
};
const OpDef& DefOf(const MSort*);

}  // namespace forge::ir
