// SPDX-License-Identifier: Apache-2.0
// Which cases of ops are run, and with which numbers.
#pragma once
#include <cstdint>
#include <vector>

#include "ir/cases/case_inputs.h"

namespace forge {

// Seeds for ir::MakeInputs: 0, or FIRST to LAST where FORGE_CASE_SEEDS=FIRST..LAST is set.
std::vector<uint64_t> CaseSeeds();

// Cases of an op that inference does not refuse: each in f32, or the first of its element types,
// and in one of the others, which take turns with the case and with the seed: a kernel of each case
// in each type would be compiled for minutes. As many successive seeds as a case has other types
// bring all of them.
//   errors: those of ir::Concretize
absl::StatusOr<std::vector<ir::ConcreteCase>> CasesInTurns(const ir::OpDef& def, uint64_t seed);

// The positive number that a variable holds, or `standard` where it is not set.
int CountFromEnvironment(const char* variable, int standard);

}  // namespace forge
