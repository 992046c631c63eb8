// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

// The results of one of two bodies, which take the same captures. A plan reads the condition and
// goes on with the body that it chooses (runtime/plan/resolve.h).
struct If {
  Function* yes = nullptr;
  Function* no = nullptr;

  static constexpr OpInfo kInfo{.name = "if",
                                .formula = "yes(captures) where condition, else no(captures)",
                                .inputs = "condition: value; captures: value?...",
                                .outputs = "y: value...",
                                .source = "ONNX If-25"};
  static constexpr Field kFields[] = {
      FieldOf<&If::yes>("yes", "The body where condition, of one element, is true."),
      FieldOf<&If::no>("no", "The body where it is false; as many results.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;  // where the condition is a constant
  // The gradients of the body that was chosen, which is computed again for them.
  Values gradient(const GradArgs& g) const;
  absl::Status evaluate(Eval& e) const;
  Cost cost(TypeSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const If*);

}  // namespace forge::ir
