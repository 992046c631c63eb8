// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "ir/graph/module.h"

namespace forge::tools {

// Returns a function as a graph: {name, inputs [{name, type, value}], outputs, updates, variables
// [{name, value}], nodes [{op, name, attributes, types, in, out, runtime, names, from}]}. Values
// are numbers that identify them; null is an absent operand. `op` is the op with its attributes in
// the text form, `name` the op kind alone.
nlohmann::json FunctionJson(const ir::Function& f);

}  // namespace forge::tools
