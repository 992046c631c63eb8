// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

// Runs a body again and again: body(step, condition, carried..., captures...) gives the next
// condition, the carried values, and the rows of the others. A plan compiles the body once and
// calls it from the host.
struct Loop {
  Function* body = nullptr;
  int64_t carried = 0;
  Dim rows = -1;

  static constexpr OpInfo kInfo{
      .name = "loop",
      .formula = "carried values after the last step, then the rows of all steps stacked",
      .inputs = "steps: value?; condition: value?; x: value?...",
      .outputs = "y: value...",
      .source = "ONNX Loop-25"};
  static constexpr Field kFields[] = {
      FieldOf<&Loop::body>("body", "One step."),
      FieldOf<&Loop::carried>("carried", "How many of x are carried; the others are captures."),
      FieldOf<&Loop::rows>("rows", "How many steps there are; -1: the types of rows are unknown.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;  // fails: a plan runs it
  // Keeps what each step began with, and goes back over the steps, each of which is computed again.
  Values gradient(const GradArgs& g) const;  // loop_gradient.cc
  absl::Status evaluate(Eval& e) const;
  Cost cost(TypeSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Loop*);

}  // namespace forge::ir
