// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/norm/affine.h"

namespace forge::ir {

struct BatchNorm {
  int64_t axis = 1;
  double epsilon = 1e-5;

  static constexpr OpInfo kInfo{
      .name = "batch_norm",
      .formula = "y = (x - mean) * gamma / sqrt(variance + epsilon) + beta along axis",
      .inputs = "x: float[*d]; gamma: =x[c]; beta: =x[c]; mean: =x[c]; variance: =x[c]",
      .outputs = "y: =x",
      .source = "ONNX BatchNormalization-15 (inference); torch.nn.functional.batch_norm"};
  static constexpr Field kFields[] = {
      FieldOf<&BatchNorm::axis>("axis", "Of extent c; negative counts from the end."),
      FieldOf<&BatchNorm::epsilon>("epsilon", "Added to the variance.")};

  Values decompose(Function&, ValueSpan in) const {
    const Value gamma = Widened(in[1]), beta = Widened(in[2]), mean = Widened(in[3]);
    const Value deviation = sqrt(Widened(in[4]) + epsilon);
    const Value scale = gamma / deviation, shift = beta - mean * scale;
    return {Narrowed(AffineAlong(axis, Widened(in[0]), scale, shift), in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    const auto in = [](const std::string& x, const std::string& c) {
      return std::vector<std::string>{x, c, c, c, c + " in 0.1..3"};
    };
    return {{BatchNorm{}, in("float[2,3,4,5]", "float[3]")},
            {BatchNorm{.axis = -1, .epsilon = 1e-3}, in("float[7,33]", "float[33]")},
            {BatchNorm{.axis = 0}, in("f32[5]", "f32[5]")},
            {BatchNorm{}, in("f32[2,17,9]", "f32[17]")},
            {BatchNorm{}, in("f32[0,3,4]", "f32[3]")},
            {.op = BatchNorm{}, .in = in("f32[8,64,56,56]", "f32[64]"), .bench = true},
            {BatchNorm{}, in("f32[2,3,4]", "f32[4]"), "axis 1 has 3 elements, not 4"},
            {BatchNorm{.axis = 2}, in("f32[2,3]", "f32[3]"), "axis 2 is outside rank 2"},
            {BatchNorm{}, {"f32[2,3]", "f32[3]", "f32[2]", "f32[3]", "f32[3]"}, "beta"}};
  }
};
const OpDef& DefOf(const BatchNorm*);

}  // namespace forge::ir
