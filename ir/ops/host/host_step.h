// SPDX-License-Identifier: Apache-2.0
// What host steps have in common: ops on strings and sequences, and ops whose results have as many
// elements as the data say. A plan computes them on the host, on every device, between its parts
// (runtime/staged_function.h); their results have types when they are there.
#pragma once
#include "ir/op/op.h"
#include "ir/type/host_value.h"

namespace forge::ir {

// Fails `f`: a host step has no decomposition.
Values NoDecomposition(Function& f, std::string_view op);

// An operand of one element.  errors: InvalidArgument (it has another number of them)
absl::StatusOr<int64_t> ScalarOperand(const Eval& e, size_t operand, std::string_view what);

}  // namespace forge::ir

// The members of a host step but kInfo, kFields and evaluate; `results`: how many it has.
#define FORGE_HOST_STEP(results)                                                          \
  absl::StatusOr<Types> infer(TypeSpan) const { return Types(results, Type::Unknown()); } \
  FORGE_HOST_STEP_OF_TYPES
// The same but `infer`, too.
#define FORGE_HOST_STEP_OF_TYPES                                                            \
  Values decompose(Function& f, ValueSpan) const { return NoDecomposition(f, kInfo.name); } \
  static constexpr NotDifferentiable gradient{"it is computed on the host"};                \
  absl::Status evaluate(Eval& e) const;                                                     \
  Cost cost(TypeSpan) const { return {.flops = 0, .terms = 0}; }                            \
  [[gnu::cold]] static Cases cases() { return {}; }
