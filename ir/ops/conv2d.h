// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/op.h"

namespace forge::ir {

struct Conv2d {
  std::vector<int64_t> strides = {1, 1}, dilations = {1, 1};
  std::vector<int64_t> padding = {0, 0, 0, 0};
  int64_t groups = 1;

  static constexpr OpInfo kInfo{
      .name = "conv2d",
      .formula =
          "y[n,m,p,q] = bias[m] + sum over c,r,s of w[m,c,r,s] * "
          "x[n, m / (M / groups) * K + c, p * stride + r * dilation - padding, ...]",
      .inputs = "x: float[n, c, h, w]; weight: =x[m, k, r, s]; bias: =x[m]?",
      .outputs = "y: =x[n, m, p, q]",
      .source = "ONNX Conv-11; torch.nn.functional.conv2d"};
  static constexpr Field kFields[] = {
      FieldOf<&Conv2d::strides>("strides", "Rows, columns; each at least 1."),
      FieldOf<&Conv2d::dilations>("dilations", "Rows, columns; each at least 1."),
      FieldOf<&Conv2d::padding>("padding", "Zeros at top, left, bottom, right; negative crops."),
      FieldOf<&Conv2d::groups>("groups", "Divides c and m; c is groups * k.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  static constexpr Primitive decompose{};
  static constexpr Pending gradient{};
  absl::Status evaluate(Eval& e) const;
  Cost cost(TypeSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Conv2d*);

}  // namespace forge::ir
