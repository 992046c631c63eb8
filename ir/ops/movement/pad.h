// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

// What surrounds the tensor: a value, or elements of the tensor.
enum class PadMode : uint8_t { kConstant, kReflect, kEdge, kWrap };

struct Pad {
  Dims before = {}, after = {};
  Number value = {};
  PadMode mode = PadMode::kConstant;

  static constexpr OpInfo kInfo{.name = "pad",
                                .formula = "y = x with value, or what mode says of x, around it",
                                .inputs = "x: number|bool[*d]",
                                .outputs = "y: =x[*p]",
                                .source = "ONNX Pad-19; torch.nn.functional.pad"};
  static constexpr Field kFields[] = {
      FieldOf<&Pad::before>("before", "Elements put before each axis; negative ones crop."),
      FieldOf<&Pad::after>("after", "Elements put after each axis; likewise."),
      FieldOf<&Pad::value>("value", "Converted to the element type as `cast` does."),
      FieldOf<&Pad::mode>("mode",
                          "Value; mirrored about the outermost elements, of which no more than the "
                          "others are repeated; the outermost element; from the other end.",
                          "constant|reflect|edge|wrap")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  IndexMap map(TypeSpan in, const Dims& at) const;
  Values decompose(Function& f, ValueSpan in) const;  // of complex numbers
  Values gradient(const GradArgs& g) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Pad*);

}  // namespace forge::ir
