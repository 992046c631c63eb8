// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct Concat {
  int64_t axis = 0;

  static constexpr OpInfo kInfo{.name = "concat",
                                .formula = "y holds the operands one after another along axis",
                                .inputs = "x: any...",
                                .outputs = "y: =x[*c]",
                                .source = "ONNX Concat-13; torch.cat"};
  static constexpr Field kFields[] = {
      FieldOf<&Concat::axis>("axis", "Negative counts from the end.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  IndexMap map(TypeSpan in, const Dims& at) const;
  // Of three operands and more, in halves: a device may bind fewer.
  Values decompose(Function& f, ValueSpan in) const;
  Values gradient(const GradArgs& g) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Concat*);

}  // namespace forge::ir
