// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct StridedGather {
  int64_t axis = 0;
  Dim size = 0, step = 1, shift = 0, divisor = 1;

  static constexpr OpInfo kInfo{
      .name = "strided_gather",
      .formula =
          "y[.., i, ..] = x[.., floor((i * step + shift) / divisor), ..], the index clamped "
          "to the axis",
      .inputs = "x: any[*d]",
      .outputs = "y: =x[*s]",
      .source = "ONNX Resize-19 (nearest); torch.nn.functional.interpolate"};
  static constexpr Field kFields[] = {
      FieldOf<&StridedGather::axis>("axis", "Negative counts from the end."),
      FieldOf<&StridedGather::size>("size", "Extent of the axis in y."),
      FieldOf<&StridedGather::step>("step", "See above."),
      FieldOf<&StridedGather::shift>("shift", "See above."),
      FieldOf<&StridedGather::divisor>("divisor", "At least 1.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  IndexMap map(TypeSpan in, const Dims& at) const;
  Values gradient(const GradArgs& g) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const StridedGather*);

}  // namespace forge::ir
