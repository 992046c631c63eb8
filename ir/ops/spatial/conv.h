// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct Conv {
  std::vector<int64_t> strides, dilations, padding;  // empty: see window.h
  int64_t groups = 1;

  static constexpr OpInfo kInfo{
      .name = "conv",
      .formula =
          "y[n,m,p...] = bias[m] + sum over c,r... of w[m,c,r...] * "
          "x[n, m / (M / groups) * K + c, p * stride + r * dilation - padding, ...]",
      .inputs = "x: float|complex[n, c, *d]; weight: =x[m, k, *r]; bias: =x[m]?",
      .outputs = "y: =x[n, m, *p]",
      .source = "ONNX Conv-11; torch.nn.functional.conv1d to 3d",
      .product = true};
  static constexpr Field kFields[] = {
      FieldOf<&Conv::strides>("strides",
                              "One for each of 1 to 3 spatial axes, each at least 1; empty: ones."),
      FieldOf<&Conv::dilations>("dilations", "One for each axis, each at least 1; empty: ones."),
      FieldOf<&Conv::padding>(
          "padding",
          "Zeros before each axis, then those behind each; negative crops; empty: none."),
      FieldOf<&Conv::groups>("groups", "Divides c and m; c is groups * k.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  static constexpr Primitive decompose{};
  Values gradient(const GradArgs& g) const;
  absl::Status evaluate(Eval& e) const;
  Cost cost(TypeSpan in) const;
  OnComplex on_complex() const { return OnComplex::kProduct; }
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Conv*);

}  // namespace forge::ir
