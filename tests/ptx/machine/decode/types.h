// SPDX-License-Identifier: Apache-2.0
// The types of instructions.
#pragma once
#include <string_view>

namespace forge::ptx {

enum class Type {
  kNone,
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kF16x2,
  kBf16,
  kBf16x2,
  kTf32,
  kF32,
  kF32x2,
  kF64,
  kE4m3,
  kE5m2,
  kE4m3x2,
  kE5m2x2,
  kU16x2,
  kS16x2,
  kOther,
};

// Returns kNone for what is no type.
Type ParseType(std::string_view text);
int Bytes(Type t);  // in a register; 0 for predicates
bool IsSigned(Type t);
bool IsInteger(Type t);  // signed or unsigned, not bits
bool IsBits(Type t);

}  // namespace forge::ptx
