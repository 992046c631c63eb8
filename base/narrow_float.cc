// SPDX-License-Identifier: Apache-2.0
#include "base/narrow_float.h"

#include <cmath>

#include "base/status.h"

namespace forge {
namespace {

struct Format {
  int exponent_bits, fraction_bits, bias;
  // kIeee: the top exponent holds infinity and NaN. kOneNaN: only the all-ones code of each sign is
  // NaN. kMinusZero: the code of minus zero is the only NaN. kNone: every code is finite.
  enum Special : uint8_t { kIeee, kOneNaN, kMinusZero, kNone } special;
};

const Format& FormatOf(DType t) {
  static constexpr Format kF4E2M1{2, 1, 1, Format::kNone}, kF8E4M3{4, 3, 7, Format::kOneNaN},
      kF8E5M2{5, 2, 15, Format::kIeee}, kF8E4M3Fnuz{4, 3, 8, Format::kMinusZero},
      kF8E5M2Fnuz{5, 2, 16, Format::kMinusZero}, kBF16{8, 7, 127, Format::kIeee},
      kF16{5, 10, 15, Format::kIeee};
  switch (t) {
    case DType::kF4E2M1:
      return kF4E2M1;
    case DType::kF8E4M3:
      return kF8E4M3;
    case DType::kF8E5M2:
      return kF8E5M2;
    case DType::kF8E4M3Fnuz:
      return kF8E4M3Fnuz;
    case DType::kF8E5M2Fnuz:
      return kF8E5M2Fnuz;
    case DType::kBF16:
      return kBF16;
    default:
      FORGE_CHECK(t == DType::kF16);
      return kF16;
  }
}

uint32_t SignBit(const Format& f) { return 1u << (f.exponent_bits + f.fraction_bits); }

// The largest finite magnitude's code.
uint32_t LargestCode(const Format& f) {
  const uint32_t all = SignBit(f) - 1;
  if (f.special == Format::kIeee) return all - (1u << f.fraction_bits);
  return f.special == Format::kOneNaN ? all - 1 : all;
}

uint32_t NaNCode(const Format& f) {
  switch (f.special) {
    case Format::kIeee:  // quiet
      return SignBit(f) - 1 - ((1u << (f.fraction_bits - 1)) - 1);
    case Format::kOneNaN:
      return SignBit(f) - 1;
    case Format::kMinusZero:
      return SignBit(f);
    case Format::kNone:
      return 0;
  }
  return 0;
}

// The code of the magnitude nearest to `v`, which may lie beyond the largest finite code.
uint64_t RoundToCode(const Format& f, double v) {
  if (v == 0) return 0;  // frexp gives it the exponent of one
  int exponent;
  std::frexp(v, &exponent);  // v = m * 2^exponent, 0.5 <= m < 1
  const int lowest = 1 - f.bias;
  const int e = std::max(exponent - 1, lowest);
  // In units of the last place at this exponent; nearbyint rounds half to even.
  const double units = std::nearbyint(std::ldexp(v, f.fraction_bits - e));
  return (static_cast<uint64_t>(e - lowest) << f.fraction_bits) + static_cast<uint64_t>(units);
}

}  // namespace

bool IsNarrowFloat(DType t) { return t >= DType::kF4E2M1 && t <= DType::kF16; }

double DecodeNarrowFloat(DType t, uint16_t bits) {
  const Format& f = FormatOf(t);
  const uint32_t sign = bits & SignBit(f), code = bits & (SignBit(f) - 1);
  if (f.special == Format::kMinusZero && bits == NaNCode(f)) return NAN;
  if (f.special != Format::kNone && f.special != Format::kMinusZero && code > LargestCode(f)) {
    const bool infinite = f.special == Format::kIeee && code == LargestCode(f) + 1;
    return infinite ? (sign != 0 ? -INFINITY : INFINITY) : NAN;
  }
  const int exponent = static_cast<int>(code >> f.fraction_bits);
  const uint32_t fraction = code & ((1u << f.fraction_bits) - 1);
  const uint32_t units = exponent == 0 ? fraction : fraction + (1u << f.fraction_bits);
  const double magnitude =
      std::ldexp(units, (exponent == 0 ? 1 : exponent) - f.bias - f.fraction_bits);
  return sign != 0 ? -magnitude : magnitude;
}

uint16_t EncodeNarrowFloat(DType t, double v) {
  const Format& f = FormatOf(t);
  if (std::isnan(v)) return static_cast<uint16_t>(NaNCode(f));
  uint64_t code = LargestCode(f) + 1;
  if (std::isfinite(v)) code = std::min(RoundToCode(f, std::fabs(v)), code);
  if (f.special != Format::kIeee) code = std::min<uint64_t>(code, LargestCode(f));
  if (code == 0 && f.special == Format::kMinusZero) return 0;
  return static_cast<uint16_t>(code | (std::signbit(v) ? SignBit(f) : 0));
}

}  // namespace forge
