// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.h"

#include <array>
#include <bit>

namespace forge {
namespace {

struct Traits {
  std::string_view name;
  int bits;
};

// In the order of DType.
constexpr std::array<Traits, kDTypeCount> kTraits = {{
    {"bool", 8},   {"u2", 2},         {"u4", 4},         {"u8", 8},     {"u16", 16},
    {"u32", 32},   {"u64", 64},       {"i2", 2},         {"i4", 4},     {"i8", 8},
    {"i16", 16},   {"i32", 32},       {"i64", 64},       {"f4e2m1", 4}, {"f8e4m3", 8},
    {"f8e5m2", 8}, {"f8e4m3fnuz", 8}, {"f8e5m2fnuz", 8}, {"bf16", 16},  {"f16", 16},
    {"f32", 32},   {"f64", 64},       {"c64", 64},       {"c128", 128}, {"string", 0},
}};

// Drops the low `drop` bits of a magnitude, rounding half to even.
constexpr uint32_t RoundAway(uint32_t magnitude, int drop) {
  const uint32_t half = (uint32_t{1} << (drop - 1)) - 1;
  return (magnitude + half + ((magnitude >> drop) & 1)) >> drop;
}

}  // namespace

std::string_view Name(DType t) { return kTraits[static_cast<size_t>(t)].name; }

std::optional<DType> ParseDType(std::string_view name) {
  for (size_t i = 0; i < kTraits.size(); ++i)
    if (kTraits[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

DType ComplexOf(DType t) { return t == DType::kF64 ? DType::kC128 : DType::kC64; }

DType RealOf(DType t) {
  if (t == DType::kC64) return DType::kF32;
  return t == DType::kC128 ? DType::kF64 : t;
}

DType WideOf(DType t) { return Has(kFloatTypes, t) && BitWidth(t) < 32 ? DType::kF32 : t; }

int BitWidth(DType t) { return kTraits[static_cast<size_t>(t)].bits; }

std::optional<uint64_t> BytesOf(DType t, uint64_t n) {
  const uint64_t bits = static_cast<uint64_t>(BitWidth(t));
  if (bits == 0) return std::nullopt;
  if (bits < 8) return n / (8 / bits) + (n % (8 / bits) != 0);
  uint64_t bytes;
  if (__builtin_mul_overflow(n, bits / 8, &bytes)) return std::nullopt;
  return bytes;
}

uint16_t F32ToF16(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  const uint32_t sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)  // NaN: quiet, and the high payload bits stay
    return static_cast<uint16_t>(sign | 0x7e00 | ((magnitude >> 13) & 0x3ff));
  if (magnitude >= 0x477ff000)  // 65520 and beyond round to infinity
    return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude >= 0x38800000)  // normal: 2^-14 and beyond; rebias 127 to 15
    return static_cast<uint16_t>(sign | RoundAway(magnitude - (112u << 23), 13));
  if (magnitude <= 0x33000000)  // at most 2^-25, half the smallest denormal: a tie goes to zero
    return static_cast<uint16_t>(sign);
  const int exponent = static_cast<int>(magnitude >> 23);
  const uint32_t significand = (magnitude & 0x7fffff) | 0x800000;
  return static_cast<uint16_t>(sign | RoundAway(significand, 126 - exponent));
}

float F16ToF32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1f, fraction = bits & 0x3ff;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000 | (fraction << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

uint16_t F32ToBF16(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits & 0x80000000) >> 16 | RoundAway(bits & 0x7fffffff, 16));
}

float BF16ToF32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

}  // namespace forge
