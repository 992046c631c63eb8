// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/spatial/pool.h"

namespace forge::ir {

struct MaxPoolGradient {
  std::vector<int64_t> kernel, strides, dilations, padding;  // empty: see window.h
  bool ceil_mode = false;

  static constexpr OpInfo kInfo{
      .name = "max_pool_gradient",
      .formula = "each element of dy is added to zeros where `pool` finds its window's largest",
      .inputs = "x: float[n, c, *d]; dy: =x[n, c, *p]",
      .outputs = "dx: =x",
      .source = "torch.ops.aten.max_pool2d_with_indices_backward"};
  static constexpr Field kFields[] = {
      FieldOf<&MaxPoolGradient::kernel>("kernel", "As of `pool`."),
      FieldOf<&MaxPoolGradient::strides>("strides", "As of `pool`."),
      FieldOf<&MaxPoolGradient::dilations>("dilations", "As of `pool`."),
      FieldOf<&MaxPoolGradient::padding>("padding", "As of `pool`."),
      FieldOf<&MaxPoolGradient::ceil_mode>("ceil_mode", "As of `pool`.")};

  Pool forward() const;  // with its indices
  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;
  Cost cost(TypeSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const MaxPoolGradient*);

}  // namespace forge::ir
