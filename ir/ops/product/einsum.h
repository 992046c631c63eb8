// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct Einsum {
  std::string equation = {};

  static constexpr OpInfo kInfo{
      .name = "einsum",
      .formula = "y = sum of the product of the operands over the letters that y lacks",
      .inputs = "x: number...",
      .outputs = "y: =x[*r]",
      .source = "ONNX Einsum-12; torch.einsum",
      .product = true};
  static constexpr Field kFields[] = {FieldOf<&Einsum::equation>(
      "equation",
      "A letter for each axis, as in \"bij,bjk->bik\"; \"...\" stands for any axes, which "
      "broadcast; a letter twice in one operand takes the diagonal. Without \"->\" the result has "
      "\"...\" and the letters that stand once, sorted.")};

  Values decompose(Function& f, ValueSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Einsum*);

}  // namespace forge::ir
