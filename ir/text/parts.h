// SPDX-License-Identifier: Apache-2.0
// Parts of the text form, for programs that build a graph node by node.
#pragma once
#include "ir/graph/module.h"

namespace forge::ir {

// Parses "f32[n, 3]". Symbols that `module` lacks are created with default bounds.
//   errors: InvalidArgument with line and column
absl::StatusOr<Type> ParseType(std::string_view text, Module& module);

// Parses an op from its name and attributes such as "axis = 1, shape = [n, 3]"; attributes left out
// have their defaults. Functions are those of `module`.
//   errors: InvalidArgument (an unknown op), with line and column in the attributes
absl::StatusOr<AnyOp> ParseOp(std::string_view name, std::string_view attributes, Module& module);

}  // namespace forge::ir
