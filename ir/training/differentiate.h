// SPDX-License-Identifier: Apache-2.0
// Reverse-mode differentiation of functions.
#pragma once
#include "ir/training/rematerialise.h"

namespace forge::ir {

// Appends to `f` the gradients of the values `of`, times `seeds`, with respect to the values
// `with`, by the rules of the ops as they are, before any decomposition. Returns one value for each
// of `with`, of its type; zeros where nothing flows.
//   seeds: of the types of `of`, which are floats
//   activations: of `f` as it is; null: all results are kept
//   errors: InvalidArgument (other types), Unimplemented (names a node without a gradient), the
//   status of `f`
absl::StatusOr<Values> Differentiate(Function& f, ValueSpan of, ValueSpan seeds, ValueSpan with,
                                     const ActivationPlan* activations = nullptr);
// The same of one scalar, times 1.
//   errors: also InvalidArgument (`of` is not a scalar float)
absl::StatusOr<Values> Differentiate(Function& f, Value of, ValueSpan with,
                                     const ActivationPlan* activations = nullptr);

}  // namespace forge::ir
