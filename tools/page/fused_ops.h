// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "ir/graph/module.h"

namespace forge::tools {

// Returns the name of the op of a node; for a fused region the names of its ops in order, without
// constants: "conv + add + relu".
std::string OpsOf(const ir::Node& node);

}  // namespace forge::tools
