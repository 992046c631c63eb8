// SPDX-License-Identifier: Apache-2.0
// Variations of the cases of ops, for tests of what holds for every shape and element type.
#pragma once
#include "ir/cases/case_inputs.h"

namespace forge {

// Returns up to `count` cases of an op with extents drawn from a seed, in all element types of its
// cases. Extents that are equal in a case stay equal; those that the op refuses are drawn again,
// and the attributes are those of the case. Fewer: the attributes leave no other extents.
std::vector<ir::ConcreteCase> RandomCases(const ir::OpDef& def, int count, uint64_t seed = 1);

// The number of random cases of an op: FORGE_RANDOM_CASES, or `standard` where it is not set.
int RandomCaseCount(int standard);

}  // namespace forge
