// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/norm/affine.h"

namespace forge::ir {

struct InstanceNorm {
  double epsilon = 1e-5;

  static constexpr OpInfo kInfo{
      .name = "instance_norm",
      .formula =
          "y = (x - mean) / sqrt(variance + epsilon) * gamma + beta; statistics over all "
          "axes from the third, the variance biased",
      .inputs = "x: float[n, c, l, *s]; gamma: =x[c]?; beta: =x[c]?",
      .outputs = "y: =x",
      .source = "ONNX InstanceNormalization-6; torch.nn.functional.instance_norm"};
  static constexpr Field kFields[] = {
      FieldOf<&InstanceNorm::epsilon>("epsilon", "Added to the variance.")};

  Values decompose(Function& f, ValueSpan in) const {
    const Value y = f(LayerNorm{.axis = 2, .epsilon = epsilon}, {Widened(in[0])});
    return {Narrowed(AffineAlong(1, y, in[1], in[2]), in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    return {{InstanceNorm{}, {"float[2,3,5]", "float[3]", "float[3]"}},
            {InstanceNorm{.epsilon = 1e-3}, {"float[2,3,4,5]"}},
            {InstanceNorm{}, {"f32[1,17,3,2,3] in 90..110", "", "f32[17]"}},
            {InstanceNorm{}, {"float[1,1,40] edges"}},
            {InstanceNorm{}, {"f32[0,3,4]"}},
            {InstanceNorm{}, {"f32[2,3]"}, "rank"},
            {InstanceNorm{}, {"f32[2,3,4]", "f32[4]"}, "gamma"}};
  }
};
const OpDef& DefOf(const InstanceNorm*);

}  // namespace forge::ir
