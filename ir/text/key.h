// SPDX-License-Identifier: Apache-2.0
// Keys of ops and functions: equal where they compute the same with the same nodes, regardless of
// names and provenance.
#pragma once
#include <string>

#include "ir/graph/module.h"

namespace forge::ir {

// The name, the attributes, and the keys of the bodies.
std::string KeyOf(const AnyOp& op);
// The types of the arguments, the nodes and the results.
std::string KeyOf(const Function& f);

}  // namespace forge::ir
