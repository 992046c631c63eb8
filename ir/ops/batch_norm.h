// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/op.h"

namespace forge::ir {

struct BatchNorm {
  int64_t axis = 1;
  double epsilon = 1e-5;

  static constexpr OpInfo kInfo{
      .name = "batch_norm",
      .formula = "y = (x - mean) * gamma / sqrt(variance + epsilon) + beta along axis",
      .inputs = "x: float[*d]; gamma: =x[c]; beta: =x[c]; mean: =x[c]; variance: =x[c]",
      .outputs = "y: =x",
      .source = "ONNX BatchNormalization-15 (inference); torch.nn.functional.batch_norm"};
  static constexpr Field kFields[] = {
      FieldOf<&BatchNorm::axis>("axis", "Of extent c; negative counts from the end."),
      FieldOf<&BatchNorm::epsilon>("epsilon", "Added to the variance.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;
  static constexpr Pending gradient{};
  absl::Status evaluate(Eval& e) const;
  absl::Status magnitude(Eval& e) const;
  Cost cost(TypeSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const BatchNorm*);

}  // namespace forge::ir
