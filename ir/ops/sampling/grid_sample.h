// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

enum class SampleKind : uint8_t { kLinear, kNearest, kCubic };
enum class SamplePadding : uint8_t { kZeros, kBorder, kReflection };

struct GridSample {
  SampleKind kind = SampleKind::kLinear;
  SamplePadding padding = SamplePadding::kZeros;
  bool align_corners = false;

  static constexpr OpInfo kInfo{
      .name = "grid_sample",
      .formula =
          "y[n,c,p..] = x[n,c] at the place grid[n,p..], interpolated; coordinates list the last "
          "axis first, and -1 and 1 are the first and the last edge of an axis",
      .inputs = "x: float[n, c, *d]; grid: =x[n, *p]",
      .outputs = "y: =x[n, c, *q]",
      .source = "ONNX GridSample-20; torch.nn.functional.grid_sample"};
  static constexpr Field kFields[] = {
      FieldOf<&GridSample::kind>("kind",
                                 "Nearest rounds half to even; cubic, with the coefficient -0.75, "
                                 "takes images alone.",
                                 "linear|nearest|cubic"),
      FieldOf<&GridSample::padding>("padding",
                                    "What lies outside: zeros, the nearest element, or x mirrored "
                                    "at its edges.",
                                    "zeros|border|reflection"),
      FieldOf<&GridSample::align_corners>("align_corners",
                                          "Edges are the centres of the outermost elements, not "
                                          "their outer borders.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const GridSample*);

}  // namespace forge::ir
