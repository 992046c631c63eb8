// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/op.h"

namespace forge::ir {

struct ConvTranspose2d {
  std::vector<int64_t> strides = {1, 1}, dilations = {1, 1};
  std::vector<int64_t> padding = {0, 0, 0, 0}, output_padding = {0, 0};
  int64_t groups = 1;

  static constexpr OpInfo kInfo{
      .name = "conv_transpose2d",
      .formula =
          "y[n, m, p * stride + r * dilation - padding, ...] = bias[m] + the sum of "
          "w[c,m,r,s] * x[n,c,p,q]",
      .inputs = "x: float[n, c, h, w]; weight: =x[c, k, r, s]; bias: =x[m]?",
      .outputs = "y: =x[n, m, p, q]",
      .source = "ONNX ConvTranspose-11; torch.nn.functional.conv_transpose2d"};
  static constexpr Field kFields[] = {
      FieldOf<&ConvTranspose2d::strides>("strides", "Rows, columns; each at least 1."),
      FieldOf<&ConvTranspose2d::dilations>("dilations", "Rows, columns; each at least 1."),
      FieldOf<&ConvTranspose2d::padding>("padding",
                                         "Taken off the result: top, left, bottom, right."),
      FieldOf<&ConvTranspose2d::output_padding>("output_padding",
                                                "Added to the result at bottom, right."),
      FieldOf<&ConvTranspose2d::groups>("groups", "Divides c; m is groups * k.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;
  static constexpr Pending gradient{};
  absl::Status evaluate(Eval& e) const;
  Cost cost(TypeSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const ConvTranspose2d*);

}  // namespace forge::ir
