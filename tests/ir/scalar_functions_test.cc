// SPDX-License-Identifier: Apache-2.0
// The functions of the element-wise table against the machine's in higher precision.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/ir/test_rows.h"

namespace forge::ir {
namespace {

// The row of Op on numbers.
template <class Op, class S>
S Call(S x) {
  static const auto function = TestRowOf(static_cast<const Op*>(nullptr)).template In<S>();
  return function(nullptr, &x);
}
template <class Op, class S>
S Call(S x, S y) {
  static const auto function = TestRowOf(static_cast<const Op*>(nullptr)).template In<S>();
  const S operands[] = {x, y};
  return function(nullptr, operands);
}

// As the rows state them.
constexpr double kLogUlps = 1.1, kTanhUlps = 1.5, kErfUlps = 1.5, kPowUlps = 2;

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
    worst = std::max(worst, Ulps(Call<Exp>(S::Raw(x)).v, std::exp(static_cast<double>(x))));
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
    worst = std::max(
        worst, Ulps(Call<Exp>(TestScalar<double>(x)).v, std::exp(static_cast<long double>(x))));
  }
  EXPECT_LE(worst, 1.0);
}

TEST(ScalarFunctionsTest, ExpKeepsNaNAndInfinities) {
  const auto f32 = [](float x) { return Call<Exp>(TestScalar<float>::Raw(x)).v; };
  const auto f64 = [](double x) { return Call<Exp>(TestScalar<double>(x)).v; };
  EXPECT_TRUE(std::isnan(f32(NAN)));
  EXPECT_EQ(f32(INFINITY), INFINITY);
  EXPECT_EQ(f32(-INFINITY), 0);
  EXPECT_EQ(f32(0), 1);
  EXPECT_TRUE(std::isnan(f64(NAN)));
  EXPECT_EQ(f64(INFINITY), INFINITY);
  EXPECT_EQ(f64(-INFINITY), 0);
}

// ---- log, tanh, erf -----------------------------------------------------------------------------

using Exact = long double (*)(long double);

// The worst error over finite f32, every `step`th; results below the least normal number are left
// out.
template <class S, class F>
double WorstF32(F function, Exact exact, uint32_t step) {
  double worst = 0;
  for (uint64_t bits = 0; bits < 0xFFFFFFFFu; bits += step) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    const long double y = exact(x);
    if (!std::isfinite(x) || !std::isfinite(y) || std::fabs(y) < 0x1p-126L) continue;
    worst = std::max(worst, Ulps(function(S::Raw(x)).v, y));
  }
  return worst;
}
// The same in f64, over numbers of all exponents and, more densely, between -8 and 8.
template <class F>
double WorstF64(F function, Exact exact) {
  double worst = 0;
  const auto check = [&](double x) {
    const long double y = exact(x);
    if (std::isfinite(y) && std::fabs(y) >= 0x1p-1022L)
      worst = std::max(worst, Ulps(function(TestScalar<double>(x)).v, y));
  };
  for (uint64_t i = 0; i < 400000; ++i) {
    const double x = std::bit_cast<double>(i * 0x9e3779b97f4a7c15u);
    if (std::isfinite(x)) check(x);
    check((static_cast<double>(i) - 200000) * 3.99999e-5 + 1e-12);
  }
  return worst;
}

long double ExactLog(long double x) { return std::log(x); }
long double ExactTanh(long double x) { return std::tanh(x); }
long double ExactErf(long double x) { return std::erf(x); }

#define FORGE_FUNCTION(Op) [](auto x) { return Call<Op>(x); }
using FusedScalar = TestScalar<float>;
using UnfusedScalar = TestScalar<float, false>;

TEST(ScalarFunctionsTest, LogIsWithinItsBound) {
  EXPECT_LE(WorstF32<FusedScalar>(FORGE_FUNCTION(Log), &ExactLog, 1009), kLogUlps);
  EXPECT_LE(WorstF32<UnfusedScalar>(FORGE_FUNCTION(Log), &ExactLog, 2003), kLogUlps);
  EXPECT_LE(WorstF64(FORGE_FUNCTION(Log), &ExactLog), kLogUlps);
}

TEST(ScalarFunctionsTest, TanhIsWithinItsBound) {
  EXPECT_LE(WorstF32<FusedScalar>(FORGE_FUNCTION(Tanh), &ExactTanh, 1009), kTanhUlps);
  EXPECT_LE(WorstF32<UnfusedScalar>(FORGE_FUNCTION(Tanh), &ExactTanh, 2003), kTanhUlps);
  EXPECT_LE(WorstF64(FORGE_FUNCTION(Tanh), &ExactTanh), kTanhUlps);
}

TEST(ScalarFunctionsTest, ErfIsWithinItsBound) {
  EXPECT_LE(WorstF32<FusedScalar>(FORGE_FUNCTION(Erf), &ExactErf, 1009), kErfUlps);
  EXPECT_LE(WorstF32<UnfusedScalar>(FORGE_FUNCTION(Erf), &ExactErf, 2003), kErfUlps);
  EXPECT_LE(WorstF64(FORGE_FUNCTION(Erf), &ExactErf), kErfUlps);
}

// ---- sin, cos, sinh, asinh ----------------------------------------------------------------------

long double ExactSin(long double x) { return std::sin(x); }
long double ExactCos(long double x) { return std::cos(x); }
long double ExactSinh(long double x) { return std::sinh(x); }
long double ExactAsinh(long double x) { return std::asinh(x); }

// The bound that the row of Op states for every device.
template <class Op>
double BoundOf() {
  return DefOf(static_cast<const Op*>(nullptr)).scalar->info.ulps;
}

template <class Op>
void ExpectWithinTheBoundOfTheRow(Exact exact) {
  EXPECT_LE(WorstF32<FusedScalar>(FORGE_FUNCTION(Op), exact, 20011), BoundOf<Op>());
  EXPECT_LE(WorstF32<UnfusedScalar>(FORGE_FUNCTION(Op), exact, 20021), BoundOf<Op>());
  EXPECT_LE(WorstF64(FORGE_FUNCTION(Op), exact), BoundOf<Op>());
}

TEST(ScalarFunctionsTest, SinIsWithinItsBound) { ExpectWithinTheBoundOfTheRow<Sin>(&ExactSin); }
TEST(ScalarFunctionsTest, CosIsWithinItsBound) { ExpectWithinTheBoundOfTheRow<Cos>(&ExactCos); }
TEST(ScalarFunctionsTest, SinhIsWithinItsBound) { ExpectWithinTheBoundOfTheRow<Sinh>(&ExactSinh); }
TEST(ScalarFunctionsTest, AsinhIsWithinItsBound) {
  ExpectWithinTheBoundOfTheRow<Asinh>(&ExactAsinh);
}

// Equal, to the sign of zeros; any NaN is any other.
template <class T>
bool Same(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

// ---- functions of one operand whose results are within a bound of the last place
// -----------------

struct FunctionCase {
  const OpDef* def;
  Exact exact;
};
void PrintTo(const FunctionCase& c, std::ostream* out) { *out << c.def->info.name; }
template <class Op>
FunctionCase CaseOf(Exact exact) {
  return {&DefOf(static_cast<const Op*>(nullptr)), exact};
}

class FunctionTest : public testing::TestWithParam<FunctionCase> {
 public:
  template <class S>
  static auto Expression() {
    return [function = TestRowOf(*GetParam().def).In<S>()](S x) { return function(nullptr, &x); };
  }
};

TEST_P(FunctionTest, IsWithinItsBound) {
  const auto& [def, exact] = GetParam();
  const double bound = def->scalar->info.ulps;
  EXPECT_LE(WorstF32<FusedScalar>(Expression<FusedScalar>(), exact, 20011), bound);
  EXPECT_LE(WorstF32<UnfusedScalar>(Expression<UnfusedScalar>(), exact, 20021), bound);
  EXPECT_LE(WorstF64(Expression<TestScalar<double>>(), exact), bound);
}

// Where C's function has an exact or infinite result, or none, so has the row's, with its sign.
template <class T>
void ExpectEdges(const FunctionCase& c) {
  using L = std::numeric_limits<T>;
  const auto function = TestRowOf(*c.def).In<TestScalar<T>>();
  for (T x : {T{0}, T{0.5}, T{1}, T{2}, T{1.5}, T{1000}, L::min(), L::max(), L::infinity(),
              L::epsilon() / 8}) {
    for (T signed_x : {x, -x}) {
      const auto operand = TestScalar<T>::Raw(signed_x);
      const T got = function(nullptr, &operand).v, exact = static_cast<T>(c.exact(signed_x));
      if (exact == 0 || !std::isfinite(exact))
        EXPECT_TRUE(Same(got, exact)) << c.def->info.name << "(" << signed_x << ") is " << got;
      else
        EXPECT_LE(Ulps(got, c.exact(signed_x)), c.def->scalar->info.ulps) << signed_x;
    }
  }
  const auto nan = TestScalar<T>::Raw(L::quiet_NaN());
  EXPECT_TRUE(std::isnan(function(nullptr, &nan).v));
}

TEST_P(FunctionTest, OfEdges) {
  ExpectEdges<float>(GetParam());
  ExpectEdges<double>(GetParam());
}

INSTANTIATE_TEST_SUITE_P(All, FunctionTest,
                         testing::Values(CaseOf<Expm1>([](auto x) { return std::expm1(x); }),
                                         CaseOf<Exp2>([](auto x) { return std::exp2(x); }),
                                         CaseOf<Log1p>([](auto x) { return std::log1p(x); }),
                                         CaseOf<Log2>([](auto x) { return std::log2(x); }),
                                         CaseOf<Log10>([](auto x) { return std::log10(x); }),
                                         CaseOf<Tan>([](auto x) { return std::tan(x); }),
                                         CaseOf<Asin>([](auto x) { return std::asin(x); }),
                                         CaseOf<Acos>([](auto x) { return std::acos(x); }),
                                         CaseOf<Atan>([](auto x) { return std::atan(x); }),
                                         CaseOf<Cosh>([](auto x) { return std::cosh(x); }),
                                         CaseOf<Acosh>([](auto x) { return std::acosh(x); }),
                                         CaseOf<Atanh>([](auto x) { return std::atanh(x); }),
                                         CaseOf<Erfc>([](auto x) { return std::erfc(x); }),
                                         CaseOf<Rsqrt>([](auto x) { return 1 / std::sqrt(x); }),
                                         CaseOf<Trunc>([](auto x) { return std::trunc(x); })),
                         [](const auto& info) { return std::string(info.param.def->info.name); });

// The worst error of sin and cos at the numbers nearest to multiples of pi / 2, of every exponent.
template <class T>
double WorstBesideMultiples() {
  constexpr long double kQuarter = 1.57079632679489661923L;
  double worst = 0;
  for (int exponent = 0; exponent < std::numeric_limits<T>::max_exponent - 8; ++exponent) {
    for (int k = 1; k < 60; k += 2) {
      const T x = static_cast<T>(std::ldexp(kQuarter * k, exponent));
      worst = std::max(
          worst, Ulps(Call<Sin>(TestScalar<T>::Raw(x)).v, std::sin(static_cast<long double>(x))));
      worst = std::max(
          worst, Ulps(Call<Cos>(TestScalar<T>::Raw(x)).v, std::cos(static_cast<long double>(x))));
    }
  }
  return worst;
}

TEST(ScalarFunctionsTest, SinAndCosAreWithinTheirBoundBesideMultiplesOfAQuarterTurn) {
  EXPECT_LE(WorstBesideMultiples<float>(), BoundOf<Sin>());
  EXPECT_LE(WorstBesideMultiples<double>(), BoundOf<Sin>());
}

template <class T>
class ScalarFunctionsOfTest : public testing::Test {
 public:
  static T Log(T x) { return Call<ir::Log>(TestScalar<T>::Raw(x)).v; }
  static T Tanh(T x) { return Call<ir::Tanh>(TestScalar<T>::Raw(x)).v; }
  static T Erf(T x) { return Call<ir::Erf>(TestScalar<T>::Raw(x)).v; }
  static T Sin(T x) { return Call<ir::Sin>(TestScalar<T>::Raw(x)).v; }
  static T Cos(T x) { return Call<ir::Cos>(TestScalar<T>::Raw(x)).v; }
  static T Sinh(T x) { return Call<ir::Sinh>(TestScalar<T>::Raw(x)).v; }
  static T Asinh(T x) { return Call<ir::Asinh>(TestScalar<T>::Raw(x)).v; }
  static T Pow(T x, T y) { return Call<ir::Pow>(TestScalar<T>::Raw(x), TestScalar<T>::Raw(y)).v; }
};
using Widths = testing::Types<float, double>;
TYPED_TEST_SUITE(ScalarFunctionsOfTest, Widths);

TYPED_TEST(ScalarFunctionsOfTest, LogOfEdges) {
  using T = TypeParam;
  constexpr T kInf = std::numeric_limits<T>::infinity();
  constexpr T kLeast = std::numeric_limits<T>::denorm_min();
  EXPECT_EQ(this->Log(0), -kInf);
  EXPECT_EQ(this->Log(-T{0}), -kInf);
  EXPECT_EQ(this->Log(1), 0);
  EXPECT_EQ(this->Log(kInf), kInf);
  for (T x : {T{-1}, -kInf, -kLeast, std::numeric_limits<T>::quiet_NaN()})
    EXPECT_TRUE(std::isnan(this->Log(x))) << x;
  for (T x : {kLeast, kLeast * 3, std::numeric_limits<T>::min() / 2, std::numeric_limits<T>::min(),
              std::numeric_limits<T>::max()})
    EXPECT_LE(Ulps(this->Log(x), std::log(static_cast<long double>(x))), kLogUlps) << x;
}

TYPED_TEST(ScalarFunctionsOfTest, TanhAndErfOfEdges) {
  using T = TypeParam;
  constexpr T kInf = std::numeric_limits<T>::infinity();
  for (T sign : {T{1}, T{-1}}) {
    for (T large : {T{30}, std::numeric_limits<T>::max(), kInf}) {
      EXPECT_EQ(this->Tanh(sign * large), sign) << large;
      EXPECT_EQ(this->Erf(sign * large), sign) << large;
    }
    const T zero = std::copysign(T{0}, sign);
    EXPECT_TRUE(Same(this->Tanh(zero), zero));
    EXPECT_TRUE(Same(this->Erf(zero), zero));
    const T least = sign * std::numeric_limits<T>::denorm_min();
    EXPECT_TRUE(Same(this->Tanh(least), least));
    EXPECT_TRUE(Same(this->Erf(least), least));
  }
  EXPECT_TRUE(std::isnan(this->Tanh(std::numeric_limits<T>::quiet_NaN())));
  EXPECT_TRUE(std::isnan(this->Erf(std::numeric_limits<T>::quiet_NaN())));
}

TYPED_TEST(ScalarFunctionsOfTest, SinAndCosOfEdges) {
  using T = TypeParam;
  constexpr T kInf = std::numeric_limits<T>::infinity();
  for (T x : {kInf, -kInf, std::numeric_limits<T>::quiet_NaN()}) {
    EXPECT_TRUE(std::isnan(this->Sin(x))) << x;
    EXPECT_TRUE(std::isnan(this->Cos(x))) << x;
  }
  for (T x : {T{0}, -T{0}, std::numeric_limits<T>::denorm_min()}) {
    EXPECT_TRUE(Same(this->Sin(x), x)) << x;
    EXPECT_EQ(this->Cos(x), 1) << x;
  }
}

TYPED_TEST(ScalarFunctionsOfTest, SinhAndAsinhOfEdges) {
  using T = TypeParam;
  constexpr T kInf = std::numeric_limits<T>::infinity();
  for (T sign : {T{1}, T{-1}}) {
    for (T x : {T{0}, std::numeric_limits<T>::denorm_min(), kInf}) {
      EXPECT_TRUE(Same(this->Sinh(sign * x), sign * x)) << x;
      EXPECT_TRUE(Same(this->Asinh(sign * x), sign * x)) << x;
    }
    EXPECT_TRUE(Same(this->Sinh(sign * std::numeric_limits<T>::max()), sign * kInf));
    const T most = std::numeric_limits<T>::max();
    EXPECT_LE(Ulps(this->Asinh(sign * most), std::asinh(static_cast<long double>(sign * most))),
              BoundOf<Asinh>());
  }
  EXPECT_TRUE(std::isnan(this->Sinh(std::numeric_limits<T>::quiet_NaN())));
  EXPECT_TRUE(std::isnan(this->Asinh(std::numeric_limits<T>::quiet_NaN())));
}

// ---- pow ----------------------------------------------------------------------------------------

template <class T, bool kFused>
double WorstPow() {
  using S = TestScalar<T, kFused>;
  double worst = 0;
  // The same exponents of results everywhere: y is drawn for the logarithm of x.
  const double most = std::log(static_cast<double>(std::numeric_limits<T>::max())) * 0.999;
  for (uint64_t i = 1; i < 300000; ++i) {
    const uint64_t random = i * 0x9e3779b97f4a7c15u;
    const bool near_one = i % 3 == 0;
    T x;
    if constexpr (std::is_same_v<T, float>)
      x = std::bit_cast<float>(static_cast<uint32_t>(random >> 33));
    else
      x = std::bit_cast<double>(random >> 1);
    if (near_one) x = static_cast<T>(1 + static_cast<double>(random >> 40) * 0x1p-26 - 0.1);
    if (!(x > 0) || !std::isfinite(x) || x == 1) continue;
    const double share = static_cast<double>((random * 0x2545f4914f6cdd1du) >> 11) * 0x1p-52 - 1;
    const T y = static_cast<T>(share * most / std::log(static_cast<double>(x)));
    const long double exact = std::pow(static_cast<long double>(x), static_cast<long double>(y));
    if (!std::isfinite(y) || exact < std::numeric_limits<T>::min() ||
        exact > std::numeric_limits<T>::max())
      continue;
    worst = std::max(worst, Ulps(Call<Pow>(S::Raw(x), S::Raw(y)).v, exact));
  }
  return worst;
}

TEST(ScalarFunctionsTest, PowIsWithinItsBound) {
  EXPECT_LE((WorstPow<float, true>()), kPowUlps);
  EXPECT_LE((WorstPow<float, false>()), kPowUlps);
  EXPECT_LE((WorstPow<double, true>()), kPowUlps);
  EXPECT_LE((WorstPow<double, false>()), kPowUlps);
}

TYPED_TEST(ScalarFunctionsOfTest, PowOfEdgesIsAsInC) {
  using T = TypeParam;
  constexpr T kInf = std::numeric_limits<T>::infinity();
  // Within the bound the greatest number itself may round up to infinity.
  constexpr T kMost = std::numeric_limits<T>::max() * T{0.999};
  constexpr T kLeast = std::numeric_limits<T>::min();
  std::vector<T> all{0,
                     1,
                     T{0.5},
                     2,
                     T{2.5},
                     3,
                     4,
                     T{1} / 3,
                     100,
                     101,
                     kInf,
                     kMost,
                     kLeast,
                     std::numeric_limits<T>::denorm_min(),
                     std::nextafter(T{1}, T{2})};
  for (size_t i = 0, n = all.size(); i < n; ++i) all.push_back(-all[i]);
  all.push_back(std::numeric_limits<T>::quiet_NaN());
  for (T x : all) {
    for (T y : all) {
      const T exact = std::pow(x, y), got = this->Pow(x, y);
      const bool special = exact == 0 || std::isinf(exact) || std::isnan(exact);
      if (special || std::fabs(exact) < kLeast)
        EXPECT_TRUE(Same(got, exact) || (!special && std::fabs(got - exact) <= kLeast))
            << x << " ^ " << y << " is " << got << ", should be " << exact;
      else
        EXPECT_LE(Ulps(got, std::pow(static_cast<long double>(x), static_cast<long double>(y))),
                  kPowUlps)
            << x << " ^ " << y;
    }
  }
}

}  // namespace
}  // namespace forge::ir
