// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

// Part of a function with gradients of its own. It takes what it reads as operands: bodies read no
// parameters and states. Lowering writes the body out.
struct CustomGradient {
  Function* body = nullptr;
  Function* backward = nullptr;

  static constexpr OpInfo kInfo{
      .name = "custom_gradient",
      .formula = "the results of body; what flows back to the operands are those of backward",
      .inputs = "x: any...",
      .outputs = "y: any...",
      .source = "jax.custom_vjp; torch.autograd.Function"};
  static constexpr Field kFields[] = {
      FieldOf<&CustomGradient::body>("body", "Takes the operands."),
      FieldOf<&CustomGradient::backward>(
          "backward",
          "Takes the operands, the results of body, and what flows back to each of them. Its "
          "result "
          "with the name of an argument of body flows back to that; nothing does to the others.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;
  Values gradient(const GradArgs& g) const;
  absl::Status evaluate(Eval& e) const;
  Cost cost(TypeSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const CustomGradient*);

}  // namespace forge::ir
