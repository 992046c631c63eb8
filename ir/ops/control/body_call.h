// SPDX-License-Identifier: Apache-2.0
// Ops that call one body with all of their operands.
#pragma once
#include "ir/graph/module.h"

namespace forge::ir {

// The types of a body's results for operands of these types, whose extents may stand for symbols in
// the types of its arguments.
//   errors: InvalidArgument (no body, another number of operands or other types)
absl::StatusOr<Types> TypesOfCall(const Function* body, TypeSpan in);
absl::Status EvaluateCall(const Function& body, Eval& e);
Cost CostOfCall(const Function& body);

}  // namespace forge::ir
