// SPDX-License-Identifier: Apache-2.0
// f16, bf16 and tf32 to and from f32, rounded to nearest even, in code that compilers vectorise.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

namespace forge::ptx {

inline float Canonical(float v) { return v == v ? v : std::bit_cast<float>(0x7fffffffu); }

// Flushes subnormal numbers to zero of the same sign.
inline float Flush(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  return (bits & 0x7f800000u) == 0 ? std::bit_cast<float>(bits & 0x80000000u) : v;
}

struct F16 {
  static float Decode(uint16_t h) {
    const uint32_t magnitude = uint32_t{h & 0x7fffu} << 13, sign = uint32_t{h & 0x8000u} << 16;
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
    const uint32_t finite = std::bit_cast<uint32_t>(scaled);
    const uint32_t special = magnitude | 0x7f800000u;
    return std::bit_cast<float>(((h & 0x7c00u) == 0x7c00u ? special : finite) | sign);
  }
  static uint16_t Encode(float f) {
    const uint32_t bits = std::bit_cast<uint32_t>(f), sign = bits >> 16 & 0x8000u,
                   a = bits & 0x7fffffffu;
    const uint32_t tiny = std::bit_cast<uint32_t>(std::bit_cast<float>(a) + 0.5f) - 0x3f000000u;
    const uint32_t normal = (a + 0xc8000fffu + (a >> 13 & 1)) >> 13;
    uint32_t r = a < 0x38800000u ? tiny : normal;
    r = a >= 0x477ff000u ? 0x7c00u : r;
    return static_cast<uint16_t>(a > 0x7f800000u ? 0x7fffu : r | sign);
  }
};

struct Bf16 {
  static float Decode(uint16_t h) { return std::bit_cast<float>(uint32_t{h} << 16); }
  static uint16_t Encode(float f) {
    const uint32_t bits = std::bit_cast<uint32_t>(f);
    const uint32_t r = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : r);
  }
};

// A double that rounds to any format of at most 24 bits as the exact sum of both would (round to
// odd).
inline double AddToOdd(double a, double b) {
  const double s = a + b;
  const double back = s - a;
  const double error = (a - (s - back)) + (b - back);
  const uint64_t bits = std::bit_cast<uint64_t>(s);
  if (error == 0 || error != error || (bits & 1) != 0 || std::isinf(s)) return s;
  // Towards the exact sum when it is larger in magnitude, else one below, which is odd too.
  return std::bit_cast<double>((error > 0) == (s > 0) ? bits + 1 : bits - 1);
}

// f64 to f16 or bf16 with one rounding: through an f32 that is rounded to odd.
inline float ToOddFloat(double v) {
  const float f = static_cast<float>(v);
  if (static_cast<double>(f) == v || f != f) return f;
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  if (std::isinf(f)) return std::bit_cast<float>(bits - 1);  // the largest finite number is odd
  if ((bits & 1) != 0) return f;
  const bool larger = std::fabs(v) > std::fabs(static_cast<double>(f));
  return std::bit_cast<float>(larger ? bits + 1 : bits - 1);
}

}  // namespace forge::ptx
