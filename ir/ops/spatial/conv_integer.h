// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/spatial/conv.h"

namespace forge::ir {

// As many products of bytes as f32 sums exactly.
inline constexpr int64_t kExactTerms = (int64_t{1} << 24) / (255 * 255);

// Of 8-bit integers, exact until i32 wraps. Images are padded before, with their zero point.
struct ConvInteger {
  std::vector<int64_t> strides, dilations;  // empty: see window.h
  int64_t groups = 1;

  static constexpr OpInfo kInfo{
      .name = "conv_integer",
      .formula =
          "y[n,m,p...] = sum over c,r... of w[m,c,r...] * "
          "x[n, m / (M / groups) * K + c, p * stride + r * dilation, ...], in i32",
      .inputs = "x: i8|u8[n, c, *d]; weight: i8|u8[m, k, *r]",
      .outputs = "y: i32[n, m, *p]",
      .source = "ONNX ConvInteger-10"};
  static constexpr Field kFields[] = {
      FieldOf<&ConvInteger::strides>("strides", "As of `conv`."),
      FieldOf<&ConvInteger::dilations>("dilations", "As of `conv`."),
      FieldOf<&ConvInteger::groups>("groups", "Divides c and m; c is groups * k.")};

  // The same of floats.
  Conv unpadded() const {
    return {.strides = strides, .dilations = dilations, .padding = {}, .groups = groups};
  }
  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;
  static constexpr NotDifferentiable gradient{"integers have no gradient"};
  Cost cost(TypeSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const ConvInteger*);

}  // namespace forge::ir
