// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/spatial/conv.h"

namespace forge::ir {

struct ConvWeightGradient {
  Dims kernel = {};
  std::vector<int64_t> strides, dilations, padding;  // empty: see window.h
  int64_t groups = 1;

  static constexpr OpInfo kInfo{
      .name = "conv_weight_gradient",
      .formula =
          "dweight[m,c,r...] = sum over n,p... of dy[n,m,p...] * "
          "x[n, m / (M / groups) * K + c, p * stride + r * dilation - padding, ...]",
      .inputs = "x: float[n, c, *d]; dy: =x[n, m, *p]",
      .outputs = "dweight: =x[m, k, *r]",
      .source = "torch.ops.aten.convolution_backward"};
  static constexpr Field kFields[] = {
      FieldOf<&ConvWeightGradient::kernel>("kernel", "Spatial extents of the weight: 1 to 3."),
      FieldOf<&ConvWeightGradient::strides>("strides", "As of `conv`."),
      FieldOf<&ConvWeightGradient::dilations>("dilations", "As of `conv`."),
      FieldOf<&ConvWeightGradient::padding>("padding", "As of `conv`."),
      FieldOf<&ConvWeightGradient::groups>("groups", "As of `conv`.")};

  Conv forward() const { return {strides, dilations, padding, groups}; }
  absl::StatusOr<Types> infer(TypeSpan in) const;
  // A convolution in which taps and windows change roles.
  Values decompose(Function& f, ValueSpan in) const;
  Cost cost(TypeSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const ConvWeightGradient*);

}  // namespace forge::ir
