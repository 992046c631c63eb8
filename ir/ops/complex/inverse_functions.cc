// SPDX-License-Identifier: Apache-2.0
// Inverse trigonometric and hyperbolic functions of complex values. They are computed in the first
// quadrant, where no sum cancels, by the formulas of W. Kahan, "Branch cuts for complex elementary
// functions", 1987; the signs of the parts follow from symmetry.
#include "ir/ops/complex/parts.h"

namespace forge::ir {
namespace {

// `magnitude` with the sign of `v`; zeros have one.
Value WithSignOf(Value magnitude, Value v) {
  const Value ones = ZeroLike(v) - 1.0;
  return select(atan2(v, ones) < 0.0, -magnitude, magnitude);
}

ComplexParts FirstQuadrant(ComplexParts z) {
  const Value re = abs(z.re);
  return {re, abs(z.im)};
}

// sqrt(1 - z) = below.re - i below.im and sqrt(1 + z) = above of z in the first quadrant.
struct Roots {
  ComplexParts below, above;
};
Roots RootsOf(ComplexParts z) {
  const Value below = 1.0 - z.re;
  const ComplexParts root = sqrt(ComplexParts{below, z.im});
  return {root, sqrt(ComplexParts{z.re + 1.0, z.im})};
}

// The part of asin and acos that grows, above 0.
Value GrowingPart(const Roots& r) {
  const Value left = r.below.re * r.above.im;
  return asinh(left + r.below.im * r.above.re);
}

// The real part of acos for a real part of this sign: an angle in 0..pi.
Value AngleOf(const Roots& r, Value sign) {
  const Value negative = atan2(sign, ZeroLike(sign) - 1.0) < 0.0;
  const Value y = select(negative, r.above.re, r.below.re);
  return atan2(y, select(negative, r.below.re, r.above.re)) * 2.0;
}

ComplexParts SineOfFirstQuadrant(ComplexParts z) {
  const Roots r = RootsOf(z);
  const Value left = r.below.re * r.above.re;
  const Value re = atan2(z.re, left + r.below.im * r.above.im);
  return {re, GrowingPart(r)};
}

ComplexParts TangentOfFirstQuadrant(ComplexParts z) {
  // From here on the real part is below the last place of the other, and squares stay finite.
  constexpr double kFar = 1e18;
  const Value x = min(z.re, kFar), y = min(z.im, kFar);
  const Value below = 1.0 - x, squared = below * below, height = y * y;
  const Value four = x * 4.0, re = log1p(four / (squared + height)) * 0.25;
  const Value product = below * (x + 1.0), twice = y * 2.0;
  return {re, atan2(twice, product - height) * 0.5};
}

ComplexParts WithSignsOf(ComplexParts y, ComplexParts z) {
  const Value re = WithSignOf(y.re, z.re);
  return {re, WithSignOf(y.im, z.im)};
}

ComplexParts Swapped(ComplexParts z) { return {z.im, z.re}; }

}  // namespace

ComplexParts asin(ComplexParts z) { return WithSignsOf(SineOfFirstQuadrant(FirstQuadrant(z)), z); }

ComplexParts asinh(ComplexParts z) {
  const ComplexParts turned = Swapped(FirstQuadrant(z));
  return WithSignsOf(Swapped(SineOfFirstQuadrant(turned)), z);
}

ComplexParts acos(ComplexParts z) {
  const Roots r = RootsOf(FirstQuadrant(z));
  const Value re = AngleOf(r, z.re);
  return {re, -WithSignOf(GrowingPart(r), z.im)};
}

ComplexParts acosh(ComplexParts z) {
  const Roots r = RootsOf(FirstQuadrant(z));
  const Value re = GrowingPart(r);
  return {re, WithSignOf(AngleOf(r, z.re), z.im)};
}

ComplexParts atanh(ComplexParts z) {
  return WithSignsOf(TangentOfFirstQuadrant(FirstQuadrant(z)), z);
}

ComplexParts atan(ComplexParts z) {
  const ComplexParts turned = Swapped(FirstQuadrant(z));
  return WithSignsOf(Swapped(TangentOfFirstQuadrant(turned)), z);
}

}  // namespace forge::ir
