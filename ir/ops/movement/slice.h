// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct Slice {
  Dims begin = {}, end = {};
  std::vector<int64_t> axes = {}, steps = {};

  static constexpr OpInfo kInfo{
      .name = "slice",
      .formula = "y takes begin, begin + step ... before end of each axis",
      .inputs = "x: any[*d]",
      .outputs = "y: =x[*s]",
      .source = "ONNX Slice-13; Python slices"};
  static constexpr Field kFields[] = {
      FieldOf<&Slice::begin>("begin", "First index; negative counts from the end; clamped."),
      FieldOf<&Slice::end>("end", "First index not taken; likewise."),
      FieldOf<&Slice::axes>("axes", "The axis of each entry; none means the leading ones."),
      FieldOf<&Slice::steps>("steps", "Not 0, negative goes backwards; none means 1 each.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  IndexMap map(TypeSpan in, const Dims& at) const;
  Values gradient(const GradArgs& g) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Slice*);

}  // namespace forge::ir
