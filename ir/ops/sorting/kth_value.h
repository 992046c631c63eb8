// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/decomposing.h"
#include "ir/ops/sorting/top_k.h"

namespace forge::ir {

struct KthValue {
  int64_t k = 1;
  int64_t axis = -1;
  bool keep_dims = false;

  static constexpr OpInfo kInfo{
      .name = "kth_value",
      .formula = "the k-th smallest element along axis, and its index; of equal ones in order",
      .inputs = "x: ordered[*d]",
      .outputs = "y: =x[*r]; index: i64[*r]",
      .source = "torch.kthvalue"};
  static constexpr Field kFields[] = {
      FieldOf<&KthValue::k>("k", "From 1 to the extent of the axis."),
      FieldOf<&KthValue::axis>("axis", "Negative counts from the end."),
      FieldOf<&KthValue::keep_dims>("keep_dims", "Keeps the axis with extent 1.")};

  Values decompose(Function& f, ValueSpan in) const {
    const auto along = NormalAxis(axis, in[0].type().rank());
    if (!along.ok()) return f.Fail(along.status()), Values{in[0], in[0]};
    if (k < 1) return f.Fail(InvalidArgument("k is {}", k)), Values{in[0], in[0]};
    Values out = f.Add(TopK{k, axis, false}, in);
    for (Value& v : out) {
      v = f(Slice{.begin = {Dim(k - 1)}, .end = {Dim(k)}, .axes = {axis}}, {v});
      Dims shape = v.type() ? v.type().shape() : Dims();
      if (keep_dims || !f.status().ok()) continue;
      shape.erase(shape.begin() + *along);
      v = f(Reshape{shape}, {v});
    }
    return out;
  }
  [[gnu::cold]] static Cases cases() {
    return {{KthValue{3}, {"ordered[3,7] in -2..2"}},
            {KthValue{2, 0, true}, {"float[5,4]"}},
            {KthValue{40}, {"float[40] edges"}},
            {KthValue{1, -2}, {"f32[2,1,3]"}},
            {KthValue{1, 1}, {"f32[0,3]"}},
            {KthValue{4}, {"f32[2,3]"}, "k is 4, axis 1 has 3 elements"},
            {KthValue{0}, {"f32[2,3]"}, "k is 0"},
            {KthValue{1, 2}, {"f32[2,3]"}, "axis 2 is outside rank 2"}};
  }
};
const OpDef& DefOf(const KthValue*);

}  // namespace forge::ir
