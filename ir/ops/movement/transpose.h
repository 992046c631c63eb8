// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct Transpose {
  std::vector<int64_t> permutation = {};

  static constexpr OpInfo kInfo{.name = "transpose",
                                .formula = "axis i of y is axis permutation[i] of x",
                                .inputs = "x: any[*d]",
                                .outputs = "y: =x[*p]",
                                .source = "ONNX Transpose-13; torch.permute"};
  static constexpr Field kFields[] = {
      FieldOf<&Transpose::permutation>("permutation", "Each axis of x once.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  IndexMap map(TypeSpan in, const Dims& at) const;
  Values gradient(const GradArgs& g) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Transpose*);

}  // namespace forge::ir
