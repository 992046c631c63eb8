// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/op.h"

namespace forge::ir {

struct Sample {
  int64_t axis = 0;
  Dim size = 0, step = 1, shift = 0, divisor = 1;

  static constexpr OpInfo kInfo{
      .name = "sample",
      .formula =
          "y[.., i, ..] = x[.., floor((i * step + shift) / divisor), ..], the index clamped "
          "to the axis",
      .inputs = "x: any[*d]",
      .outputs = "y: =x[*s]",
      .source = "ONNX Resize-19 (nearest); torch.nn.functional.interpolate"};
  static constexpr Field kFields[] = {
      FieldOf<&Sample::axis>("axis", "Negative counts from the end."),
      FieldOf<&Sample::size>("size", "Extent of the axis in y."),
      FieldOf<&Sample::step>("step", "See above."), FieldOf<&Sample::shift>("shift", "See above."),
      FieldOf<&Sample::divisor>("divisor", "At least 1.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  IndexMap map(TypeSpan in, const Dims& at) const;
  static constexpr Pending gradient{};
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Sample*);

}  // namespace forge::ir
