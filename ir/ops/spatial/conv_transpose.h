// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct ConvTranspose {
  std::vector<int64_t> strides, dilations, padding;  // empty: see window.h
  std::vector<int64_t> output_padding;
  int64_t groups = 1;

  static constexpr OpInfo kInfo{
      .name = "conv_transpose",
      .formula =
          "y[n, m, p * stride + r * dilation - padding, ...] = bias[m] + the sum of "
          "w[c,m,r...] * x[n,c,p...]",
      .inputs = "x: float|complex[n, c, *d]; weight: =x[c, k, *r]; bias: =x[m]?",
      .outputs = "y: =x[n, m, *p]",
      .source = "ONNX ConvTranspose-11; torch.nn.functional.conv_transpose1d to 3d",
      .product = true};
  static constexpr Field kFields[] = {
      FieldOf<&ConvTranspose::strides>(
          "strides", "One for each of 1 to 3 spatial axes, each at least 1; empty: ones."),
      FieldOf<&ConvTranspose::dilations>("dilations",
                                         "One for each axis, each at least 1; empty: ones."),
      FieldOf<&ConvTranspose::padding>(
          "padding", "Taken off the result before each axis, then behind each; empty: nothing."),
      FieldOf<&ConvTranspose::output_padding>(
          "output_padding", "Added to the result behind each axis; empty: nothing."),
      FieldOf<&ConvTranspose::groups>("groups", "Divides c; m is groups * k.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;
  Values gradient(const GradArgs& g) const;
  absl::Status evaluate(Eval& e) const;
  Cost cost(TypeSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const ConvTranspose*);

}  // namespace forge::ir
