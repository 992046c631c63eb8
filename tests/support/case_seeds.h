// SPDX-License-Identifier: Apache-2.0
// Which numbers the cases of ops are run with.
#pragma once
#include <cstdint>
#include <vector>

namespace forge {

// Seeds for ir::MakeInputs: 0, or FIRST to LAST where FORGE_CASE_SEEDS=FIRST..LAST is set.
std::vector<uint64_t> CaseSeeds();

}  // namespace forge
