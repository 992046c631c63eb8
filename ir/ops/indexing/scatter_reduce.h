// SPDX-License-Identifier: Apache-2.0
// Scatters that reduce what meets at an element, also without the element itself.
#pragma once
#include "ir/ops/decomposing.h"
#include "ir/ops/indexing/index_arithmetic.h"

namespace forge::ir {

struct ScatterReduce {
  int64_t axis = 0;
  ReduceKind kind = ReduceKind::kSum;
  bool include_self = true;

  static constexpr OpInfo kInfo{
      .name = "scatter_reduce",
      .formula =
          "y[a.., k, b..] = kind of x[a.., k, b..] and all updates[a.., i, b..] with indices[a.., "
          "i, b..] = k; x where there are none",
      .inputs = "x: real[*d]; indices: i32|i64[*i]; updates: =x[*u]",
      .outputs = "y: =x",
      .source = "torch.scatter_reduce"};
  static constexpr Field kFields[] = {
      FieldOf<&ScatterReduce::axis>("axis", "As of `scatter`."),
      FieldOf<&ScatterReduce::kind>("kind",
                                    "The mean of integers is rounded down; of equal elements max "
                                    "and min share gradients evenly.",
                                    "sum|mean|max|min|prod"),
      FieldOf<&ScatterReduce::include_self>(
          "include_self", "False: elements of x that have updates do not count.")};

  Values decompose(Function&, ValueSpan in) const {
    return {ReducedInto(in[0], {in[1], in[2], axis}, kind, include_self)};
  }
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const ScatterReduce*);

struct IndexReduce {
  int64_t axis = 0;
  ReduceKind kind = ReduceKind::kProd;
  bool include_self = true;

  static constexpr OpInfo kInfo{
      .name = "index_reduce",
      .formula =
          "y[a.., k, b..] = kind of x[a.., k, b..] and all updates[a.., i, b..] with "
          "indices[i] = k; x where there are none",
      .inputs = "x: real[*d]; indices: i32|i64[n]; updates: =x[*u]",
      .outputs = "y: =x",
      .source = "torch.index_reduce"};
  static constexpr Field kFields[] = {
      FieldOf<&IndexReduce::axis>("axis", "As of `scatter`."),
      FieldOf<&IndexReduce::kind>("kind", "As of `scatter_reduce`.", "sum|mean|max|min|prod"),
      FieldOf<&IndexReduce::include_self>("include_self", "As of `scatter_reduce`.")};

  Values decompose(Function&, ValueSpan in) const {
    const Value indices = OnAxis(in[1], axis, in[0].type().rank());
    return {ReducedInto(in[0], {indices, in[2], axis}, kind, include_self)};
  }
  [[gnu::cold]] static Cases cases() {
    const auto in = [](ReduceKind kind, bool self, int64_t axis = 0) {
      return IndexReduce{axis, kind, self};
    };
    return {
        {in(ReduceKind::kProd, true), {"real[5,3]", "i64[4] in -5..4", "real[4,3]"}},
        {in(ReduceKind::kMean, false, 1), {"float[2,7,3]", "i32[9] in 0..6", "float[2,9,3]"}},
        {in(ReduceKind::kMax, false, -1), {"float[3,5]", "i64[9] in 0..4", "float[3,9]"}},
        {in(ReduceKind::kMin, true), {"i32[6]", "i64[40] in -8..7", "i32[40]"}},
        {in(ReduceKind::kProd, true), {"f32[3,2]", "i64[0]", "f32[0,2]"}},
        {in(ReduceKind::kProd, true, 2), {"f32[2,3]", "i64[2]", "f32[2,3]"}, "axis 2 is outside"},
        {in(ReduceKind::kProd, true), {"f32[2,3]", "i64[2]", "f32[4,3]"}, "do not broadcast"}};
  }
};
const OpDef& DefOf(const IndexReduce*);

inline Cases ScatterReduce::cases() {
  const auto in = [](ReduceKind kind, bool self, int64_t axis = 0) {
    return ScatterReduce{axis, kind, self};
  };
  return {
      {in(ReduceKind::kSum, false), {"real[5,3]", "i64[4,3] in -7..6", "real[4,3]"}},
      {in(ReduceKind::kMean, true, 1), {"float[2,7,3]", "i32[2,9,2] in -7..6", "float[2,9,2]"}},
      {in(ReduceKind::kMean, false), {"real[6]", "i64[40] in -8..7", "real[40]"}},
      {in(ReduceKind::kMax, false, -1), {"real[3,5]", "i64[3,9] in 0..4", "real[3,9]"}},
      {in(ReduceKind::kMin, false), {"real[4,2]", "i64[3,1] in 0..3", "real[3,2]"}},
      {in(ReduceKind::kMax, true), {"float[7] edges", "i64[14] in 0..6", "float[14] edges"}},
      {in(ReduceKind::kProd, false), {"f64[4,3]", "i64[3,3] in 0..3", "f64[3,3] in -1..1"}},
      {in(ReduceKind::kSum, true), {"f32[3,2]", "i64[0,2]", "f32[0,2]"}},
      {in(ReduceKind::kSum, true, 2), {"f32[2,3]", "i64[2,3]", "f32[2,3]"}, "axis 2 is outside"},
      {in(ReduceKind::kSum, true), {"f32[2,3]", "i64[4,4]", "f32[4,4]"}, "4 updates for 3"}};
}

}  // namespace forge::ir
