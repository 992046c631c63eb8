// SPDX-License-Identifier: Apache-2.0
// Elements as others of the same width, without moving a byte.
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct BitCast {
  DType to = DType::kI32;

  static constexpr OpInfo kInfo{
      .name = "bit_cast",
      .formula = "the bits of x as an element of another type of the same width",
      .inputs = "x: any[*d]",
      .outputs = "y: =to[*d]",
      .source = "ONNX BitCast-26; torch.Tensor.view(dtype)",
      .keeps_order = true};
  static constexpr Field kFields[] = {FieldOf<&BitCast::to>("to", "Element type of the result.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  static constexpr Primitive decompose{};
  static constexpr NotDifferentiable gradient{"the bits of a number have no slope"};
  absl::Status evaluate(Eval& e) const;
  Cost cost(TypeSpan) const { return {.flops = 0, .terms = 0}; }
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const BitCast*);

}  // namespace forge::ir
