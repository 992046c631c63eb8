// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/machine/decode/types.h"

namespace forge::ptx {
namespace {

struct Row {
  std::string_view text;
  Type type;
  int bytes;
};
constexpr Row kRows[] = {
    {"pred", Type::kPred, 0},     {"b8", Type::kB8, 1},         {"b16", Type::kB16, 2},
    {"b32", Type::kB32, 4},       {"b64", Type::kB64, 8},       {"b128", Type::kB128, 16},
    {"u8", Type::kU8, 1},         {"u16", Type::kU16, 2},       {"u32", Type::kU32, 4},
    {"u64", Type::kU64, 8},       {"s8", Type::kS8, 1},         {"s16", Type::kS16, 2},
    {"s32", Type::kS32, 4},       {"s64", Type::kS64, 8},       {"f16", Type::kF16, 2},
    {"f16x2", Type::kF16x2, 4},   {"bf16", Type::kBf16, 2},     {"bf16x2", Type::kBf16x2, 4},
    {"tf32", Type::kTf32, 4},     {"f32", Type::kF32, 4},       {"f32x2", Type::kF32x2, 8},
    {"f64", Type::kF64, 8},       {"e4m3", Type::kE4m3, 1},     {"e5m2", Type::kE5m2, 1},
    {"e4m3x2", Type::kE4m3x2, 2}, {"e5m2x2", Type::kE5m2x2, 2}, {"u16x2", Type::kU16x2, 4},
    {"s16x2", Type::kS16x2, 4},
};

}  // namespace

Type ParseType(std::string_view text) {
  for (const Row& row : kRows)
    if (row.text == text) return row.type;
  return Type::kNone;
}

int Bytes(Type t) {
  for (const Row& row : kRows)
    if (row.type == t) return row.bytes;
  return 0;
}

bool IsSigned(Type t) {
  return t == Type::kS8 || t == Type::kS16 || t == Type::kS32 || t == Type::kS64;
}

bool IsInteger(Type t) {
  return IsSigned(t) || t == Type::kU8 || t == Type::kU16 || t == Type::kU32 || t == Type::kU64;
}

bool IsBits(Type t) {
  return t == Type::kB8 || t == Type::kB16 || t == Type::kB32 || t == Type::kB64;
}

}  // namespace forge::ptx
