// SPDX-License-Identifier: Apache-2.0
// One instruction on given operands, for tests of each opcode.
#pragma once
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace forge::ptx {

// Executes an instruction such as "add.s32 d, a, b" once for each row of operands, one lane each.
//   bits: of the registers d, a, b, c, e in turn, 1 for predicates; rows: their values, without d's
// Returns the values of d.
absl::StatusOr<std::vector<uint64_t>> Execute(const std::string& instruction,
                                              const std::vector<int>& bits,
                                              const std::vector<std::vector<uint64_t>>& rows);

inline uint64_t BitsOf(float v) { return std::bit_cast<uint32_t>(v); }
inline uint64_t BitsOf(double v) { return std::bit_cast<uint64_t>(v); }

}  // namespace forge::ptx
