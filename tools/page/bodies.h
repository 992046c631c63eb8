// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "ir/graph/module.h"

namespace forge::tools {

// The functions that a node has as attributes.
std::vector<const ir::Function*> BodiesOf(const ir::Node& node);
// Every function that nodes of `f` have as a body, directly or inside a body, each once, in order
// of appearance.
std::vector<const ir::Function*> BodiesUnder(const ir::Function& f);

// The name of a node's op; of a fused region the ops in it, in order, constants left out: "conv +
// add + relu".
std::string OpsOf(const ir::Node& node);

}  // namespace forge::tools
