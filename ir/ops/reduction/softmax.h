// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct Softmax {
  int64_t axis = -1;
  bool masked_rows_zero = false;
  bool log = false;

  static constexpr OpInfo kInfo{
      .name = "softmax",
      .formula = "y = exp(x - max(x)) / sum(exp(x - max(x))) along axis, or its logarithm",
      .inputs = "x: float[*d]",
      .outputs = "y: =x",
      .source = "ONNX Softmax-13, LogSoftmax-13; torch.softmax, log_softmax"};
  static constexpr Field kFields[] = {
      FieldOf<&Softmax::axis>("axis", "Negative counts from the end."),
      FieldOf<&Softmax::masked_rows_zero>("masked_rows_zero",
                                          "Where all x are -infinity, y is 0 and not NaN."),
      FieldOf<&Softmax::log>("log", "y = x - max(x) - log(sum); not with masked_rows_zero.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;
  Values gradient(const GradArgs& g) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Softmax*);

}  // namespace forge::ir
