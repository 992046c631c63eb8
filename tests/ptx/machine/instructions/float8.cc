// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/machine/instructions/float8.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace forge::ptx {
namespace {

float Decode8(uint8_t v, int mantissa_bits, int bias) {
  const int mantissa = v & ((1 << mantissa_bits) - 1), exponent = (v & 0x7f) >> mantissa_bits;
  const int hidden = exponent == 0 ? 0 : 1 << mantissa_bits;
  const float magnitude = std::ldexp(static_cast<float>(mantissa + hidden),
                                     std::max(exponent, 1) - bias - mantissa_bits);
  return (v & 0x80) != 0 ? -magnitude : magnitude;
}

uint8_t Encode8(double v, int mantissa_bits, int bias) {
  const uint8_t sign = std::signbit(v) ? 0x80 : 0;
  const double a = std::fabs(v);
  if (a == 0) return sign;
  const int exponent = std::max(std::ilogb(a), 1 - bias);
  const int scaled = static_cast<int>(std::ldexp(a, mantissa_bits - exponent));
  const int hidden = 1 << mantissa_bits;
  const int bits =
      scaled < hidden ? scaled : ((exponent + bias) << mantissa_bits) + scaled - hidden;
  return static_cast<uint8_t>(sign | bits);
}

double RoundedInteger(double v, Rounding rounding) {
  switch (rounding) {
    case Rounding::kNearest:
      return std::nearbyint(v);
    case Rounding::kZero:
      return std::trunc(v);
    case Rounding::kDown:
      return std::floor(v);
    case Rounding::kUp:
      return std::ceil(v);
    case Rounding::kAway:
      return std::round(v);
  }
  return v;
}

}  // namespace

float DecodeE4m3(uint8_t v) {
  if ((v & 0x7f) == 0x7f) return std::numeric_limits<float>::quiet_NaN();
  return Decode8(v, 3, 7);
}

float DecodeE5m2(uint8_t v) {
  if ((v & 0x7f) > 0x7c) return std::numeric_limits<float>::quiet_NaN();
  if ((v & 0x7f) == 0x7c) return (v & 0x80) != 0 ? -HUGE_VALF : HUGE_VALF;
  return Decode8(v, 2, 15);
}

double RoundTo(const Format& format, double v, Rounding rounding) {
  if (v == 0 || !std::isfinite(v)) return v;
  const int quantum = std::max(std::ilogb(v), format.least) - (format.precision - 1);
  const double r =
      std::copysign(std::ldexp(RoundedInteger(std::ldexp(v, -quantum), rounding), quantum), v);
  if (std::fabs(r) <= format.largest) return r;
  const bool inward = rounding == Rounding::kZero || (rounding == Rounding::kDown && v > 0) ||
                      (rounding == Rounding::kUp && v < 0);
  return std::copysign(inward ? format.largest : HUGE_VAL, v);
}

uint8_t EncodeE4m3(double v) {
  if (v != v) return 0x7f;
  return Encode8(std::clamp(v, -kE4m3Format.largest, kE4m3Format.largest), 3, 7);
}

uint8_t EncodeE5m2(double v) {
  if (v != v) return 0x7f;
  return Encode8(std::clamp(v, -kE5m2Format.largest, kE5m2Format.largest), 2, 15);
}

}  // namespace forge::ptx
