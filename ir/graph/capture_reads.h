// SPDX-License-Identifier: Apache-2.0
// Variables that bodies read, as captures: what is not an operand has no gradient.
#pragma once
#include <vector>

#include "ir/graph/module.h"

namespace forge::ir {

// The variables other than constants that bodies of a node read, also those of nodes in them, each
// once, in order of appearance.
std::vector<Variable*> ReadInBodies(const Node& node);

// Replaces `function` by one whose bodies read constants only: they take the other variables as
// further captures.
//   errors: the first of a new function
absl::Status CaptureReads(Module& m, const std::string& function);

}  // namespace forge::ir
