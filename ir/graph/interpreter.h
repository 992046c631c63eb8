// SPDX-License-Identifier: Apache-2.0
// Runs functions on host tensors with the ops' own evaluators: folding, the reference device and
// tests.
#pragma once
#include <functional>
#include <utility>
#include <vector>

#include "ir/graph/module.h"
#include "ir/type/host_value.h"

namespace forge::ir {

// One op on operands whose types are thereby bound; null pointers are absent operands.
//   errors: InvalidArgument as the op infers, ResourceExhausted (results too large)
absl::StatusOr<std::vector<HostValue>> Evaluate(const AnyOp& op,
                                                std::span<const HostValue* const> in);

// The sums S of the error bound in docs/semantics.md for each element of each result: what the op's
// `magnitude` writes, or its evaluator where it has none. Errors as above.
absl::StatusOr<std::vector<HostValue>> Magnitudes(const AnyOp& op,
                                                  std::span<const HostValue* const> in);

// The value a variable has before its first update: its box of the stored tensor, or zeros.
// Encoded storage is decoded.
//   errors: InvalidArgument (type not bound, box outside the stored tensor), what Decode says
absl::StatusOr<HostValue> InitialValue(const Variable& v);

struct Interpretation {
  std::vector<HostValue> results;  // in the order of Function::results()
  std::vector<std::pair<Variable*, HostValue>> updates;
};

struct Interpreter {
  // The present value of a variable.
  std::function<absl::StatusOr<HostValue>(const Variable&)> read = InitialValue;
  // Sees every value as soon as it is there; an error ends the run. May be empty.
  std::function<absl::Status(uint32_t value, const HostValue&)> observe = {};

  // Runs `f` on arguments in the order of Function::arguments(). Symbols of argument types take
  // their values from the arguments and from `bindings`.
  //   errors: InvalidArgument (an argument of the wrong type, a symbol without value), and those of
  //   the ops, with the node's provenance
  absl::StatusOr<Interpretation> Run(const Function& f, std::span<const HostValue* const> arguments,
                                     Bindings bindings = {}) const;
};

// The values of the symbols that the types of `f`'s arguments consist of, from tensors of those
// types; added to `bindings`.
//   errors: InvalidArgument naming argument, dimension and both numbers
absl::Status BindArguments(const Function& f, std::span<const HostValue* const> arguments,
                           Bindings& bindings);

}  // namespace forge::ir
