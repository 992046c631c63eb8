// SPDX-License-Identifier: Apache-2.0
#include "ir/scalar_functions.h"

#include <gtest/gtest.h>

#include "tests/ir/test_scalar.h"

namespace forge::ir {
namespace {

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

template <class S>
double WorstExpF32(uint32_t step) {
  double worst = 0;
  for (uint64_t bits = 0; bits < 0xFFFFFFFFu; bits += step) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (!std::isfinite(x) || std::fabs(x) > 120) continue;
    worst = std::max(worst, Ulps(ExpF32(S::Raw(x)).v, std::exp(static_cast<double>(x))));
  }
  return worst;
}

TEST(ScalarFunctionsTest, ExpF32IsWithinItsBound) {
  EXPECT_LE(WorstExpF32<TestScalar<float>>(509), 1.1);
}

TEST(ScalarFunctionsTest, ExpF32IsWithinOneAndAHalfUnitsWithoutFusedArithmetic) {
  EXPECT_LE((WorstExpF32<TestScalar<float, false>>(1013)), 1.5);
}

TEST(ScalarFunctionsTest, ExpF64IsWithinOneUnit) {
  double worst = 0;
  for (int i = -760000; i < 720000; ++i) {
    const double x = i * 1e-3 + i * 1.7e-11;
    worst = std::max(worst,
                     Ulps(ExpF64(TestScalar<double>(x)).v, std::exp(static_cast<long double>(x))));
  }
  EXPECT_LE(worst, 1.0);
}

TEST(ScalarFunctionsTest, ExpKeepsNaNAndInfinities) {
  const auto f32 = [](float x) { return ExpF32(TestScalar<float>::Raw(x)).v; };
  const auto f64 = [](double x) { return ExpF64(TestScalar<double>(x)).v; };
  EXPECT_TRUE(std::isnan(f32(NAN)));
  EXPECT_EQ(f32(INFINITY), INFINITY);
  EXPECT_EQ(f32(-INFINITY), 0);
  EXPECT_EQ(f32(0), 1);
  EXPECT_TRUE(std::isnan(f64(NAN)));
  EXPECT_EQ(f64(INFINITY), INFINITY);
  EXPECT_EQ(f64(-INFINITY), 0);
}

}  // namespace
}  // namespace forge::ir
