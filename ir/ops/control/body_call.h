// SPDX-License-Identifier: Apache-2.0
// Calls of a body.
#pragma once
#include "ir/graph/module.h"

namespace forge::ir {

// The types of a body's results for operands of these types, whose extents may stand for symbols in
// the types of its arguments.
//   errors: InvalidArgument (no body, another number of operands or other types)
absl::StatusOr<Types> TypesOfCall(const Function* body, TypeSpan in);
// Calls it with the operands from `first` on; its results are those of the op.
absl::Status EvaluateCall(const Function& body, Eval& e, size_t first = 0);
Cost CostOfCall(const Function& body);

}  // namespace forge::ir
