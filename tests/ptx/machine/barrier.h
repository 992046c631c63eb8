// SPDX-License-Identifier: Apache-2.0
// bar.red: what threads of a block learn of each other at a barrier.
#pragma once
#include <vector>

#include "tests/ptx/machine/warp.h"

namespace forge::ptx {

inline constexpr int kBarriers = 16;

// Op::flags of a barrier.
enum class Reduction : uint8_t { kNone, kPopc, kAnd, kOr };

// Computes the results of bar.red for the warps that meet, if that is what they execute.
void ReduceAtBarrier(const std::vector<Warp*>& arrived);

}  // namespace forge::ptx
