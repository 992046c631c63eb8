// SPDX-License-Identifier: Apache-2.0
// What happens to a model between its file and its first run, for targets that read models.
#pragma once
#include <memory>

#include "ir/graph/module.h"

namespace forge::fuzz {

// Takes an accepted model through everything a program does before it runs: the passes for a device
// that takes every op whole and for one that takes and fuses decompositions, binding to the
// smallest extents, and, where that is little work, a run on zeros. Aborts where a pass leaves what
// does not verify or an error says that Forge itself is at fault.
void Prepare(std::unique_ptr<ir::Module> module);

}  // namespace forge::fuzz
