// SPDX-License-Identifier: Apache-2.0
// Reductions of truth.
#pragma once
#include "ir/ops/decomposing.h"

namespace forge::ir {

// The least or greatest of x != 0 as unsigned integers, whose limits are those of no element.
inline Value TruthOver(ReduceKind kind, Value x, const std::vector<int64_t>& axes, bool keep_dims) {
  const Value truth = convert(convert(x, DType::kBool), DType::kU32);
  const Reduce reduce{.kind = kind, .axes = axes, .keep_dims = keep_dims};
  const Value y = (*x.fn)(reduce, {truth});
  return x.fn->status().ok() ? convert(y, DType::kBool) : y;
}

struct All {
  std::vector<int64_t> axes = {};
  bool keep_dims = true;

  static constexpr OpInfo kInfo{.name = "all",
                                .formula = "y: no x over axes is 0; true over no element",
                                .inputs = "x: number|bool[*d]",
                                .outputs = "y: bool[*r]",
                                .source = "torch.all"};
  static constexpr Field kFields[] = {
      FieldOf<&All::axes>("axes", "Negative ones count from the end; none means all."),
      FieldOf<&All::keep_dims>("keep_dims", "Keeps reduced axes with extent 1.")};

  Values decompose(Function&, ValueSpan in) const {
    return {TruthOver(ReduceKind::kMin, in[0], axes, keep_dims)};
  }
  static constexpr Zero gradient{};
  [[gnu::cold]] static Cases cases() {
    return {{All{{-1}}, {"number|bool[6,2] in -1..2"}},
            {All{{0, 2}, false}, {"bool[2,5,1]"}},
            {All{}, {"f32[4] in 1..2"}},
            {All{{0}}, {"float[1,19] edges"}},
            {All{{1}, false}, {"bool[3,0]"}},
            {All{{}, false}, {"bool[]"}},
            {All{{2}}, {"bool[2,3]"}, "axis 2 is outside rank 2"},
            {All{{1, -1}}, {"bool[2,3]"}, "given twice"}};
  }
};
const OpDef& DefOf(const All*);

struct Any {
  std::vector<int64_t> axes = {};
  bool keep_dims = true;

  static constexpr OpInfo kInfo{.name = "any",
                                .formula = "y: an x over axes is not 0; false over no element",
                                .inputs = "x: number|bool[*d]",
                                .outputs = "y: bool[*r]",
                                .source = "torch.any"};
  static constexpr Field kFields[] = {
      FieldOf<&Any::axes>("axes", "Negative ones count from the end; none means all."),
      FieldOf<&Any::keep_dims>("keep_dims", "Keeps reduced axes with extent 1.")};

  Values decompose(Function&, ValueSpan in) const {
    return {TruthOver(ReduceKind::kMax, in[0], axes, keep_dims)};
  }
  static constexpr Zero gradient{};
  [[gnu::cold]] static Cases cases() {
    return {{Any{{-1}}, {"number|bool[6,2] in 0..1"}},
            {Any{{0, 2}, false}, {"bool[2,5,1]"}},
            {Any{}, {"f32[4] in 0..0"}},
            {Any{{0}}, {"float[1,19] edges"}},
            {Any{{1}, false}, {"bool[3,0]"}},
            {Any{{}, false}, {"bool[]"}},
            {Any{{2}}, {"bool[2,3]"}, "axis 2 is outside rank 2"},
            {Any{{1, -1}}, {"bool[2,3]"}, "given twice"}};
  }
};
const OpDef& DefOf(const Any*);

}  // namespace forge::ir
