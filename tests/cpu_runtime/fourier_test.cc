// SPDX-License-Identifier: Apache-2.0
// Transforms of every length that stages have, of rows and of neighbours, against the definition.
#include <cmath>
#include <numbers>

#include "ir/ops/fft/dft.h"
#include "tests/cpu_runtime/regions.h"

namespace forge::cpu {
namespace {

struct Transformed {
  int64_t outer, n, inner;
  bool inverse;
};

// Element k of row (o, i), from its definition.
std::pair<double, double> Element(const Transformed& t, const std::vector<ir::HostValue>& x,
                                  int64_t row, int64_t k) {
  const int64_t first = row / t.inner * t.n * t.inner + row % t.inner;
  long double re = 0, im = 0;  // the sum is as inexact as what it judges
  for (int64_t j = 0; j < t.n; ++j) {
    const long double turns = static_cast<long double>(j * k % t.n) / t.n;
    const long double angle = (t.inverse ? 2 : -2) * std::numbers::pi_v<long double> * turns;
    const double a = x[0].f64(first + j * t.inner);
    const double b = x.size() > 1 ? x[1].f64(first + j * t.inner) : 0;
    re += a * std::cos(angle) - b * std::sin(angle);
    im += a * std::sin(angle) + b * std::cos(angle);
  }
  return {static_cast<double>(re), static_cast<double>(im)};
}

void CheckTransform(DType type, const Transformed& t, bool complex) {
  SCOPED_TRACE(fmt::format("{} [{}, {}, {}]", Name(type), t.outer, t.n, t.inner));
  std::vector<ir::HostValue> x;
  for (uint64_t i = 0; i < (complex ? 2 : 1); ++i)
    x.push_back(Random(type, {t.outer, t.n, t.inner}, 7 + i));
  const ir::HostValue* in[] = {x.data(), complex ? &x[1] : nullptr};
  const auto got = RunOn(ir::Dft{.axis = 1, .inverse = t.inverse}, in);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->kernel, "fourier");
  // The largest element has about 2 n^0.5 of the unit.
  const double unit = type == DType::kF64 ? 1e-15 : 5e-7;
  const double tolerance = unit * 4 * std::sqrt(static_cast<double>(t.n));
  const int64_t step = std::max<int64_t>(1, t.n / 64);
  for (int64_t row = 0; row < t.outer * t.inner; ++row)
    for (int64_t k = 0; k < t.n; k += step) {
      const auto [re, im] = Element(t, x, row, k);
      const int64_t at = (row / t.inner * t.n + k) * t.inner + row % t.inner;
      ASSERT_NEAR(got->results[0].f64(at), re, tolerance) << "row " << row << ", k " << k;
      ASSERT_NEAR(got->results[1].f64(at), im, tolerance) << "row " << row << ", k " << k;
    }
}

TEST(FourierTest, EveryLengthOfSmallFactors) {
  for (const DType type : {DType::kF32, DType::kF64})
    for (const int64_t n : {1,  2,  3,  4,  5,  6,  7,  8,   9,   11,  12,  16,  20,  23,  28,
                            31, 32, 36, 48, 64, 80, 91, 100, 128, 169, 256, 400, 512, 961, 1200})
      CheckTransform(type, {2, n, 1, n % 3 == 0}, n % 5 != 0);
}

TEST(FourierTest, NeighboursThatFillVectorsAndThatDoNot) {
  for (const DType type : {DType::kF32, DType::kF64})
    for (const int64_t inner : {2, 4, 7, 32, 35, 64})
      for (const int64_t n : {3, 8, 60}) CheckTransform(type, {2, n, inner, inner == 7}, true);
}

TEST(FourierTest, ALargePrimeFactorHasNoKernel) {
  const ir::HostValue x = Random(DType::kF32, {1, 37}, 3);
  const ir::HostValue* in[] = {&x, nullptr};
  EXPECT_FALSE(RunOn(ir::Dft{}, in).ok());
}

TEST(FourierTest, NeighboursOfARowAreSeparate) {  // NaN of one is not in the others
  ir::HostValue x = Random(DType::kF32, {16, 8}, 3);
  x.Set(3, std::numeric_limits<double>::quiet_NaN());
  const ir::HostValue* in[] = {&x, nullptr};
  const auto got = RunOn(ir::Dft{.axis = 0}, in);
  ASSERT_TRUE(got.ok()) << got.status();
  for (int64_t i = 0; i < 16 * 8; ++i)
    EXPECT_EQ(std::isnan(got->results[0].f64(i)), i % 8 == 3) << i;
}

}  // namespace
}  // namespace forge::cpu
