// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/norm/affine.h"

namespace forge::ir {

struct GroupNorm {
  int64_t groups = 1;
  double epsilon = 1e-5;

  static constexpr OpInfo kInfo{.name = "group_norm",
                                .formula = "instance_norm over groups of c / groups channels",
                                .inputs = "x: float[n, c, *s]; gamma: =x[c]?; beta: =x[c]?",
                                .outputs = "y: =x",
                                .source = "ONNX GroupNormalization-21; torch.group_norm"};
  static constexpr Field kFields[] = {
      FieldOf<&GroupNorm::groups>("groups", "Divides c."),
      FieldOf<&GroupNorm::epsilon>("epsilon", "Added to the variance.")};

  Values decompose(Function& f, ValueSpan in) const {
    const Dims shape = in[0].type().shape();
    const Dim each = FloorDiv(shape[1], std::max<int64_t>(groups, 1));
    if (groups < 1 || (shape[1].is_constant() && !(each * groups == shape[1])))
      f.Fail(InvalidArgument("{} groups do not divide {} channels", groups, shape[1].ToText()));
    const Dims rows = {shape[0], groups, each * Product(std::span(shape).subspan(2))};
    const Value y = f(LayerNorm{.epsilon = epsilon}, {f(Reshape{rows}, {Widened(in[0])})});
    return {Narrowed(AffineAlong(1, f(Reshape{shape}, {y}), in[1], in[2]), in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    return {{GroupNorm{.groups = 2}, {"float[2,4,3]", "float[4]", "float[4]"}},
            {GroupNorm{.groups = 3, .epsilon = 1e-3}, {"float[1,6,2,5] edges", "", "float[6]"}},
            {GroupNorm{.groups = 2}, {"f32[0,4,3]"}},
            {GroupNorm{.groups = 2}, {"f32[2,3,4]"}, "2 groups do not divide 3 channels"},
            {GroupNorm{.groups = 0}, {"f32[2,3,4]"}, "0 groups"},
            {GroupNorm{}, {"f32[2,3,4]", "f32[4]"}, "gamma"}};
  }
};
const OpDef& DefOf(const GroupNorm*);

}  // namespace forge::ir
