// SPDX-License-Identifier: Apache-2.0
// e4m3 and e5m2. Source: OCP 8-bit Floating Point Specification 1.0.
#pragma once
#include <cstdint>

namespace forge::ptx {

float DecodeE4m3(uint8_t v);
float DecodeE5m2(uint8_t v);

// How a conversion rounds: to nearest even, to zero, down, up, to nearest away from zero.
enum class Rounding : uint8_t { kNearest, kZero, kDown, kUp, kAway };

// A binary floating-point format: bits of the significand with the hidden one, exponents of the
// smallest normal and of the largest number, the largest number.
struct Format {
  int precision, least, most;
  double largest;
};
inline constexpr Format kF16Format{11, -14, 15, 65504.0};
inline constexpr Format kBf16Format{8, -126, 127, 0x1.fep127};
inline constexpr Format kTf32Format{11, -126, 127, 0x1.ffcp127};
inline constexpr Format kF32Format{24, -126, 127, 0x1.fffffep127};
inline constexpr Format kE4m3Format{4, -6, 8, 448.0};
inline constexpr Format kE5m2Format{3, -14, 15, 57344.0};

// Returns the number of the format that v rounds to; where the format ends, an infinity or the
// largest number, as the rounding says. NaN stays.
double RoundTo(const Format& format, double v, Rounding rounding);
// The byte of a number that RoundTo returned; saturates what the format lacks.
uint8_t EncodeE4m3(double v);
uint8_t EncodeE5m2(double v);

}  // namespace forge::ptx
