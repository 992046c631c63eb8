// SPDX-License-Identifier: Apache-2.0
// Runs functions on host tensors with the evaluators of the ops: for folding, the reference device
// and tests.
#pragma once
#include <functional>
#include <utility>
#include <vector>

#include "ir/graph/module.h"
#include "ir/type/host_value.h"

namespace forge::ir {

// Evaluates one op; null pointers are absent operands. errors: those of inference,
// ResourceExhausted (results too large)
absl::StatusOr<std::vector<HostValue>> Evaluate(const AnyOp& op,
                                                std::span<const HostValue* const> in);

// Computes the sums S of the error bound in docs/semantics.md for each element of each result, with
// the op's `magnitude`, or its evaluator where it has none. errors: as above
absl::StatusOr<std::vector<HostValue>> Magnitudes(const AnyOp& op,
                                                  std::span<const HostValue* const> in);

// Returns the value of a variable before its first update: its box of the stored tensor, or zeros.
// Encoded storage is decoded.
//   errors: InvalidArgument (type not bound, box outside the stored tensor), those of
//   Encoding::Decode
absl::StatusOr<HostValue> InitialValue(const Variable& v);

struct Interpretation {
  std::vector<HostValue> results;  // in the order of Function::results()
  std::vector<std::pair<Variable*, HostValue>> updates;
};

struct Interpreter {
  // Returns the current value of a variable.
  std::function<absl::StatusOr<HostValue>(const Variable&)> read = InitialValue;
  // Called with each value when it is computed; an error ends the run. May be empty.
  std::function<absl::Status(uint32_t value, const HostValue&)> observe = {};

  // Runs `f` on arguments in the order of Function::arguments(). The symbols of argument types get
  // their values from the arguments and from `bindings`.
  //   errors: InvalidArgument (an argument of the wrong type, a symbol without value); those of the
  //   ops, with the provenance of the node
  absl::StatusOr<Interpretation> Run(const Function& f, std::span<const HostValue* const> arguments,
                                     Bindings bindings = {}) const;
};

// States that `d` is `n`: a symbol gets this value, unless it has one.
//   errors: InvalidArgument (outside of the symbol's bounds, or another number than `d` is)
absl::Status BindDim(const Dim& d, int64_t n, Bindings& bindings);

// Derives the values of the symbols in the types of the arguments of `f` from tensors of these
// types, and adds them to `bindings`.
//   errors: InvalidArgument naming argument, dimension and both numbers
absl::Status BindArguments(const Function& f, std::span<const HostValue* const> arguments,
                           Bindings& bindings);

}  // namespace forge::ir
