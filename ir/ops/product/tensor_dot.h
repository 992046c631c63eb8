// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <numeric>

#include "ir/ops/product/contract.h"

namespace forge::ir {

struct TensorDot {
  std::vector<int64_t> axes_a = {}, axes_b = {};

  static constexpr OpInfo kInfo{
      .name = "tensor_dot",
      .formula = "y = sum of a * b over pairs of axes; the other axes of a, then those of b",
      .inputs = "a: number[*d]; b: =a[*e]",
      .outputs = "y: =a[*r]",
      .source = "torch.tensordot; torch.inner, torch.outer, torch.dot and torch.mv",
      .product = true};
  static constexpr Field kFields[] = {
      FieldOf<&TensorDot::axes_a>("axes_a",
                                  "Negative ones count from the end; none: the outer "
                                  "product."),
      FieldOf<&TensorDot::axes_b>("axes_b", "The axis of b for each of them.")};

  Values decompose(Function& f, ValueSpan in) const {
    const Type &a = in[0].type(), &b = in[1].type();
    for (const auto& s : {NormalAxes(axes_a, a.rank()), NormalAxes(axes_b, b.rank())})
      if (!s.ok()) f.Fail(s.status());
    if (axes_a.size() != axes_b.size())
      f.Fail(InvalidArgument("{} axes of a, {} of b", axes_a.size(), axes_b.size()));
    if (!f.status().ok()) return {in[0]};
    std::vector<int> left(static_cast<size_t>(a.rank())), right(static_cast<size_t>(b.rank()));
    std::iota(left.begin(), left.end(), 0);
    std::iota(right.begin(), right.end(), static_cast<int>(left.size()));
    std::vector<int> keep = left;
    keep.insert(keep.end(), right.begin(), right.end());
    for (size_t i = 0; i < axes_a.size(); ++i) {
      const auto x = static_cast<size_t>(*NormalAxis(axes_a[i], a.rank()));
      const auto y = static_cast<size_t>(*NormalAxis(axes_b[i], b.rank()));
      if (!Broadcast(a.shape()[x], b.shape()[y]).ok())
        f.Fail(InvalidArgument("axis {} of {} is not axis {} of {}", x, a.ToText(), y, b.ToText()));
      std::erase_if(keep, [&](int label) { return label == left[x] || label == right[y]; });
      right[y] = left[x];
    }
    return {InOrder(Contract({in[0], left}, {in[1], right}, keep), keep)};
  }
  [[gnu::cold]] static Cases cases() {
    return {{TensorDot{{2, 1}, {0, 1}}, {"float|complex[2,3,4]", "float|complex[4,3,5]"}},
            {TensorDot{{-1}, {-1}}, {"float[2,3]", "float[4,3]"}},
            {TensorDot{}, {"float[3]", "float[2,2]"}},
            {TensorDot{{0}, {0}}, {"float[7]", "float[7]"}},
            {TensorDot{{1}, {0}}, {"int[3,4]", "int[4]"}},
            {TensorDot{}, {"i32[3]", "i32[4]"}},
            {TensorDot{}, {"f32[]", "f32[2,3]"}},
            {TensorDot{{0}, {1}}, {"f32[0,2]", "f32[3,0]"}},
            {TensorDot{{0}, {0}}, {"f32[2]", "f32[3]"}, "axis 0 of f32[2] is not axis 0 of f32[3]"},
            {TensorDot{{0}, {}}, {"f32[2]", "f32[2]"}, "1 axes of a, 0 of b"},
            {TensorDot{{0, 0}, {0, 1}}, {"f32[2]", "f32[2,2]"}, "given twice"}};
  }
};
const OpDef& DefOf(const TensorDot*);

}  // namespace forge::ir
