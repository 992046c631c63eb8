// SPDX-License-Identifier: Apache-2.0
// Element types: names, sets and widths; conversions of f16 and bf16.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace forge {

enum class DType : uint8_t {
  kBool,
  kU2,
  kU4,
  kU8,
  kU16,
  kU32,
  kU64,
  kI2,
  kI4,
  kI8,
  kI16,
  kI32,
  kI64,
  kF4E2M1,
  kF8E4M3,
  kF8E5M2,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz,
  kBF16,
  kF16,
  kF32,
  kF64,
  kC64,
  kC128,
  kString,
};
inline constexpr int kDTypeCount = 25;

// A set of element types, for signatures and support tables.
using DTypes = uint64_t;
constexpr DTypes Bit(DType t) { return DTypes{1} << static_cast<int>(t); }
constexpr bool Has(DTypes set, DType t) { return (set & Bit(t)) != 0; }

inline constexpr DTypes kFloatTypes =
    Bit(DType::kF16) | Bit(DType::kBF16) | Bit(DType::kF32) | Bit(DType::kF64);
inline constexpr DTypes kSignedTypes =
    Bit(DType::kI8) | Bit(DType::kI16) | Bit(DType::kI32) | Bit(DType::kI64);
inline constexpr DTypes kUnsignedTypes =
    Bit(DType::kU8) | Bit(DType::kU16) | Bit(DType::kU32) | Bit(DType::kU64);
inline constexpr DTypes kIntTypes = kSignedTypes | kUnsignedTypes;
inline constexpr DTypes kComplexTypes = Bit(DType::kC64) | Bit(DType::kC128);
inline constexpr DTypes kRealTypes = kFloatTypes | kIntTypes;
// Types with arithmetic.
inline constexpr DTypes kNumberTypes = kRealTypes | kComplexTypes;
// Types with an order, for sorting and arg-max; false < true.
inline constexpr DTypes kOrderedTypes = kRealTypes | Bit(DType::kBool);
inline constexpr DTypes kAnyTypes = (DTypes{1} << kDTypeCount) - 1;

// The name in text forms, docs and messages: "f32", "i64", "bool", "c64".
std::string_view Name(DType t);
std::optional<DType> ParseDType(std::string_view name);
// The element type of the parts of a complex number; other types unchanged.
DType RealOf(DType t);
// The element type of complex numbers with such parts: c128 for f64, else c64.
DType ComplexOf(DType t);
// f32 for narrower floats; other types unchanged.
DType WideOf(DType t);
// Bits of a stored element; 0 for strings, which have no fixed width.
int BitWidth(DType t);
// Bytes of `n` elements, with types narrower than a byte packed; nullopt on overflow and for
// strings.
std::optional<uint64_t> BytesOf(DType t, uint64_t n);

// IEEE binary16 and bfloat16, round half to even; NaN stays NaN.
uint16_t F32ToF16(float v);
float F16ToF32(uint16_t bits);
uint16_t F32ToBF16(float v);
float BF16ToF32(uint16_t bits);

}  // namespace forge
