// SPDX-License-Identifier: Apache-2.0
// Reverse-mode differentiation of functions.
#pragma once
#include "ir/graph/module.h"

namespace forge::ir {

// Appends to `f` the gradients of the scalar `of` with respect to the values `with`, by the rules
// of the ops as they are, before any decomposition. Returns one value for each, of its type; zeros
// where nothing flows.
//   errors: InvalidArgument (`of` is not a scalar float), Unimplemented (names a node without a
//   gradient), the status of `f`
absl::StatusOr<Values> Differentiate(Function& f, Value of, ValueSpan with);

}  // namespace forge::ir
