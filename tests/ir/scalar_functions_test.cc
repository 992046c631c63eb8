// SPDX-License-Identifier: Apache-2.0
#include "ir/scalar_functions.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace forge::ir {
namespace {

// A scalar in T, as a device would have it.
template <class T>
struct Lane {
  T v;
  Lane(double x) : v(static_cast<T>(x)) {}  // NOLINT: doubles on either side
};
using F32 = Lane<float>;
using F64 = Lane<double>;

template <class T>
Lane<T> Raw(T v) {
  Lane<T> x(0);
  x.v = v;
  return x;
}
#define FORGE_BINARY(name, expression) \
  template <class T>                   \
  Lane<T> name(Lane<T> a, Lane<T> b) { \
    return Raw<T>(expression);         \
  }                                    \
  template <class T>                   \
  Lane<T> name(Lane<T> a, double b) {  \
    return name(a, Lane<T>(b));        \
  }
FORGE_BINARY(operator+, a.v + b.v)
FORGE_BINARY(operator-, a.v - b.v)
FORGE_BINARY(operator*, a.v* b.v)
FORGE_BINARY(max, a.v != a.v || a.v >= b.v ? a.v : b.v)
FORGE_BINARY(min, a.v != a.v || a.v <= b.v ? a.v : b.v)
#undef FORGE_BINARY

bool g_fused = true;
template <class T>
Lane<T> fma(Lane<T> a, Lane<T> b, Lane<T> c) {
  const volatile T product = a.v * b.v;  // volatile: the compiler must not fuse it again
  return Raw<T>(g_fused ? std::fma(a.v, b.v, c.v) : product + c.v);
}
template <class T>
Lane<T> fma(Lane<T> a, double b, Lane<T> c) {
  return fma(a, Lane<T>(b), c);
}
template <class T>
Lane<T> fma(Lane<T> a, Lane<T> b, double c) {
  return fma(a, b, Lane<T>(c));
}
template <class T>
Lane<T> fma(Lane<T> a, double b, double c) {
  return fma(a, Lane<T>(b), Lane<T>(c));
}
template <class T>
Lane<T> floor(Lane<T> x) {
  return Raw<T>(std::floor(x.v));
}
template <class T>
Lane<T> round_even(Lane<T> x) {
  return Raw<T>(std::nearbyint(x.v));
}
F32 exp2_int(F32 i) {
  if (std::isnan(i.v)) return Raw(0.0f);
  EXPECT_TRUE(i.v >= -126 && i.v <= 127) << i.v;
  return Raw(std::bit_cast<float>((static_cast<int32_t>(i.v) + 127) << 23));
}
F64 exp2_int(F64 i) {
  if (std::isnan(i.v)) return Raw(0.0);
  EXPECT_TRUE(i.v >= -1022 && i.v <= 1023) << i.v;
  return Raw(std::bit_cast<double>((static_cast<int64_t>(i.v) + 1023) << 52));
}

// The error of `got` in units of the last place of `exact` as a T.
template <class T>
double Ulps(T got, long double exact) {
  const T rounded = static_cast<T>(exact);
  if (std::isinf(rounded) || std::isinf(got)) return rounded == got ? 0 : INFINITY;
  int exponent;
  std::frexp(exact, &exponent);
  const int digits = std::numeric_limits<T>::digits;
  const int least = std::numeric_limits<T>::min_exponent - digits;
  const long double unit = std::ldexp(1.0L, std::max(exponent - digits, least));
  return static_cast<double>(std::fabs(static_cast<long double>(got) - exact) / unit);
}

double WorstExpF32(uint32_t step) {
  double worst = 0;
  for (uint64_t bits = 0; bits < 0xFFFFFFFFu; bits += step) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (!std::isfinite(x) || std::fabs(x) > 120) continue;
    worst = std::max(worst, Ulps(ExpF32(Raw(x)).v, std::exp(static_cast<double>(x))));
  }
  return worst;
}

TEST(ScalarFunctionsTest, ExpF32IsWithinItsBound) { EXPECT_LE(WorstExpF32(509), 1.1); }

TEST(ScalarFunctionsTest, ExpF32IsWithinOneAndAHalfUnitsWithoutFusedArithmetic) {
  g_fused = false;
  EXPECT_LE(WorstExpF32(1013), 1.5);
  g_fused = true;
}

TEST(ScalarFunctionsTest, ExpF64IsWithinOneUnit) {
  double worst = 0;
  for (int i = -760000; i < 720000; ++i) {
    const double x = i * 1e-3 + i * 1.7e-11;
    worst = std::max(worst, Ulps(ExpF64(Raw(x)).v, std::exp(static_cast<long double>(x))));
  }
  EXPECT_LE(worst, 1.0);
}

TEST(ScalarFunctionsTest, ExpKeepsNaNAndInfinities) {
  EXPECT_TRUE(std::isnan(ExpF32(Raw(NAN)).v));
  EXPECT_EQ(ExpF32(Raw(INFINITY)).v, INFINITY);
  EXPECT_EQ(ExpF32(Raw(-INFINITY)).v, 0);
  EXPECT_TRUE(std::isnan(ExpF64(Raw<double>(NAN)).v));
  EXPECT_EQ(ExpF64(Raw<double>(INFINITY)).v, INFINITY);
  EXPECT_EQ(ExpF64(Raw<double>(-INFINITY)).v, 0);
  EXPECT_EQ(ExpF32(Raw(0.0f)).v, 1);
}

}  // namespace
}  // namespace forge::ir
