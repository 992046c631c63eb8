// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct Reshape {
  Dims shape = {};

  static constexpr OpInfo kInfo{.name = "reshape",
                                .formula = "y has the elements of x in row-major order",
                                .inputs = "x: any[*d]",
                                .outputs = "y: =x[*s]",
                                .source = "ONNX Reshape-14, Squeeze-13, Flatten-13; torch.reshape",
                                .keeps_order = true};
  static constexpr Field kFields[] = {
      FieldOf<&Reshape::shape>("shape", "As many elements as x has.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  IndexMap map(TypeSpan in, const Dims& at) const;
  Values gradient(const GradArgs& g) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Reshape*);

}  // namespace forge::ir
