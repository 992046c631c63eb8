// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct Sort {
  int64_t axis = -1;
  bool descending = false;

  static constexpr OpInfo kInfo{
      .name = "sort",
      .formula =
          "y is x in order along axis, and index the places where its elements were; equal "
          "ones keep their order, NaN is beyond infinity",
      .inputs = "x: ordered[*d]",
      .outputs = "y: =x; index: i64[*d]",
      .source = "torch.sort, stable"};
  static constexpr Field kFields[] = {
      FieldOf<&Sort::axis>("axis", "Negative counts from the end."),
      FieldOf<&Sort::descending>("descending", "The largest element comes first.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  static constexpr Primitive decompose{};
  Values gradient(const GradArgs& g) const;
  absl::Status evaluate(Eval& e) const;
  Cost cost(TypeSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Sort*);

}  // namespace forge::ir
