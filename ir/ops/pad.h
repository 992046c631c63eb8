// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/op.h"

namespace forge::ir {

struct Pad {
  Dims before = {}, after = {};
  double value = 0;

  static constexpr OpInfo kInfo{.name = "pad",
                                .formula = "y = x with value around it",
                                .inputs = "x: number|bool[*d]",
                                .outputs = "y: =x[*p]",
                                .source = "ONNX Pad-13 (constant); torch.nn.functional.pad"};
  static constexpr Field kFields[] = {
      FieldOf<&Pad::before>("before", "Elements put before each axis; negative ones crop."),
      FieldOf<&Pad::after>("after", "Elements put after each axis; likewise."),
      FieldOf<&Pad::value>("value", "Converted to the element type as `cast` does.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  IndexMap map(TypeSpan in, const Dims& at) const;
  Values gradient(const GradArgs& g) const;
  static Cases cases();
};
const OpDef& DefOf(const Pad*);

}  // namespace forge::ir
