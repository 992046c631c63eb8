// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "ir/graph/module.h"

namespace forge::tools {

// A function as a graph: {name, inputs [{name, type, value}], outputs, updates, variables [{name,
// value}], nodes [{op, name, attributes, types, in, out, late, names, from}]}. Values are numbers,
// the same wherever they are made and read; null is an operand that is not given. `op` is the op
// with its attributes as the text form has it, `name` its kind alone.
nlohmann::json FunctionJson(const ir::Function& f);

}  // namespace forge::tools
