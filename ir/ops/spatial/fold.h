// SPDX-License-Identifier: Apache-2.0
// Windows of images as columns of matrices, and the reverse.
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct Unfold {
  std::vector<int64_t> kernel, strides, dilations, padding;  // empty: see window.h

  static constexpr OpInfo kInfo{
      .name = "unfold",
      .formula =
          "y[n, c * k + t, p] = tap t of window p of x[n,c], both in row-major order; k taps "
          "in a window, 0 in padding",
      .inputs = "x: float[n, c, h, w]",
      .outputs = "y: =x[n, k, p]",
      .source = "torch.nn.functional.unfold"};
  static constexpr Field kFields[] = {
      FieldOf<&Unfold::kernel>("kernel", "As of `pool`."),
      FieldOf<&Unfold::strides>("strides", "As of `pool`."),
      FieldOf<&Unfold::dilations>("dilations", "As of `pool`."),
      FieldOf<&Unfold::padding>("padding", "Before each axis, then behind each; empty: none.")};

  Values decompose(Function& f, ValueSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Unfold*);

struct Fold {
  Dims sizes = {};
  std::vector<int64_t> kernel, strides, dilations, padding;  // empty: see window.h

  static constexpr OpInfo kInfo{
      .name = "fold",
      .formula = "y[n,c,h,w] = sum of all x[n, c * k + t, p] that `unfold` would take from there",
      .inputs = "x: float[n, k, p]",
      .outputs = "y: =x[n, c, h, w]",
      .source = "ONNX Col2Im-18; torch.nn.functional.fold"};
  static constexpr Field kFields[] = {FieldOf<&Fold::sizes>("sizes", "Spatial extents of y: 2."),
                                      FieldOf<&Fold::kernel>("kernel", "As of `pool`."),
                                      FieldOf<&Fold::strides>("strides", "As of `pool`."),
                                      FieldOf<&Fold::dilations>("dilations", "As of `pool`."),
                                      FieldOf<&Fold::padding>("padding", "As of `unfold`.")};

  Values decompose(Function& f, ValueSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Fold*);

}  // namespace forge::ir
