// SPDX-License-Identifier: Apache-2.0
// What references of rows need beside <cmath>.
#include "ir/ops/elementwise/row_parts.h"

namespace forge::ir {
namespace {

// The sum of (x + k)^-s over k >= 0 for x > 0; what is beyond 40 by Euler's and Maclaurin's
// formula. Sums of both signs are formed of it, so it has digits beyond those of a double.
long double Zeta(long double s, long double x) {
  long double sum = 0;
  for (; x < 40; x += 1) sum += std::pow(x, -s);
  constexpr long double kBernoulli[] = {1.0L / 6, -1.0L / 30, 1.0L / 42, -1.0L / 30, 5.0L / 66};
  const long double power = std::pow(x, -s);
  sum += power * (x / (s - 1) + 0.5L);
  long double term = power * s / x / 2;  // s (s + 1) ... x^(1 - s - 2 j) / (2 j)!
  for (int j = 1; j <= 5; ++j) {
    sum += kBernoulli[j - 1] * term;
    term *= (s + 2 * j - 1) / x * (s + 2 * j) / x / ((2 * j + 1) * (2 * j + 2));
  }
  return sum;
}

}  // namespace

double Quotient(double a, double b) { return a / b; }

int64_t Quotient(int64_t a, int64_t b) {
  if (b == 0) return -1;
  // The lowest value has no positive counterpart.
  if (b == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
  return a / b;
}

std::complex<double> Quotient(std::complex<double> a, std::complex<double> b) {
  if (b.real() == 0 && b.imag() == 0) return {a.real() / b.real(), a.imag() / b.real()};
  if (std::fabs(b.real()) >= std::fabs(b.imag())) {
    const double ratio = b.imag() / b.real(), scale = b.real() + b.imag() * ratio;
    return {(a.real() + a.imag() * ratio) / scale, (a.imag() - a.real() * ratio) / scale};
  }
  const double ratio = b.real() / b.imag(), scale = b.real() * ratio + b.imag();
  return {(a.real() * ratio + a.imag()) / scale, (a.imag() * ratio - a.real()) / scale};
}

uint64_t Quotient(uint64_t a, uint64_t b) { return b == 0 ? ~uint64_t{0} : a / b; }

double SigmoidOf(double x) { return 1 / (1 + std::exp(-x)); }
std::complex<double> SigmoidOf(std::complex<double> x) {
  const std::complex<double> e = std::exp(x.real() >= 0 ? -x : x);
  return (x.real() >= 0 ? 1.0 : e) / (1.0 + e);
}

double PowerOf(double a, double b) { return std::pow(a, b); }

uint64_t PowerOf(uint64_t a, uint64_t b) {
  uint64_t power = 1;
  for (; b != 0; b /= 2, a *= a)
    if (b % 2 == 1) power *= a;
  return power;
}

int64_t PowerOf(int64_t a, int64_t b) {
  if (b >= 0)
    return static_cast<int64_t>(PowerOf(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
  if (a == 1) return 1;
  if (a == -1) return b % 2 == 0 ? 1 : -1;
  return 0;
}

double TruncatedRemainder(double a, double b) { return std::fmod(a, b); }

int64_t TruncatedRemainder(int64_t a, int64_t b) { return b == 0 ? a : b == -1 ? 0 : a % b; }

uint64_t TruncatedRemainder(uint64_t a, uint64_t b) { return b == 0 ? a : a % b; }

double FloorOfQuotient(double a, double b) {
  if (b == 0) return a / b;
  const double r = std::fmod(a, b);
  const double q = (a - r) / b - (r != 0 && (r < 0) != (b < 0) ? 1 : 0);
  return q == 0 ? std::copysign(0, a / b) : std::nearbyint(q);
}

int64_t FloorOfQuotient(int64_t a, int64_t b) {
  const int64_t q = Quotient(a, b), r = TruncatedRemainder(a, b);
  return b != 0 && r != 0 && (r < 0) != (b < 0) ? q - 1 : q;
}

uint64_t FloorOfQuotient(uint64_t a, uint64_t b) { return Quotient(a, b); }

double DigammaOf(double x) {
  if (x == 0) return std::copysign(std::numeric_limits<double>::infinity(), -x);
  if (x < 0) {
    const double below = std::remainder(x, 1.0);
    if (below == 0 || std::isinf(x)) return std::numeric_limits<double>::quiet_NaN();
    return DigammaOf(1 - x) - std::numbers::pi / std::tan(std::numbers::pi * below);
  }
  double sum = 0;
  for (; x < 20; x += 1) sum -= 1 / x;
  const double w = 1 / (x * x);
  return sum + std::log(x) - 0.5 / x -
         w * (1.0 / 12 - w * (1.0 / 120 - w * (1.0 / 252 - w * (1.0 / 240 - w / 132))));
}

double PolygammaOf(int64_t order, double x) {
  const double sign = order % 2 != 0 ? 1 : -1;
  if (std::isinf(x)) return x > 0 ? sign * 0.0 : std::numeric_limits<double>::quiet_NaN();
  if (x <= 0 && x == std::floor(x)) return sign * std::numeric_limits<double>::infinity();
  const long double s = static_cast<long double>(order) + 1, wide = x;
  const long double f = wide - std::floor(wide);  // terms of both signs below 0
  const long double zeta =
      x > 0 ? Zeta(s, wide) : Zeta(s, f) + sign * (Zeta(s, 1 - f) - Zeta(s, 1 - wide));
  return static_cast<double>(sign * std::tgamma(s) * zeta);
}

}  // namespace forge::ir
