// SPDX-License-Identifier: Apache-2.0
// Texts that are equal where ops, or functions, compute the same in the same way: names of values
// and functions and provenance do not count.
#pragma once
#include <string>

#include "ir/graph/module.h"

namespace forge::ir {

// Name, attributes, and what the op's bodies compute.
std::string KeyOf(const AnyOp& op);
// Types of arguments, nodes, results.
std::string KeyOf(const Function& f);

}  // namespace forge::ir
