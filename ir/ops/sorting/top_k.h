// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct TopK {
  int64_t k = 1;
  int64_t axis = -1;
  bool largest = true;

  static constexpr OpInfo kInfo{.name = "top_k",
                                .formula = "the first k along axis of sort, descending if largest",
                                .inputs = "x: ordered[*d]",
                                .outputs = "y: =x[*r]; index: i64[*r]",
                                .source = "ONNX TopK-11; torch.topk, always sorted"};
  static constexpr Field kFields[] = {
      FieldOf<&TopK::k>("k", "How many, at most the extent of the axis."),
      FieldOf<&TopK::axis>("axis", "Negative counts from the end."),
      FieldOf<&TopK::largest>("largest", "False: the smallest, in ascending order.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;
  Cost cost(TypeSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const TopK*);

}  // namespace forge::ir
