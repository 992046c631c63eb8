// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/complex/parts.h"

#include <array>
#include <limits>

#include "ir/graph/module.h"
#include "ir/ops/complex/complex.h"
#include "ir/ops/complex/view.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/movement/concat.h"

namespace forge::ir {
namespace {

bool IsComplex(Value v) { return v && Has(kComplexTypes, v.type().dtype()); }

Value Same(Value a, Value b) { return (*a.fn)(Equal{}, {a, b}); }
Value Both(Value a, Value b) { return (*a.fn)(And{}, {a, b}); }
Value Either(Value a, Value b) { return (*a.fn)(Or{}, {a, b}); }
Value AtLeast(Value a, Value b) { return (*a.fn)(GreaterEqual{}, {a, b}); }

// a cosh(y) and a sinh(y), finite also where these are but cosh(y) is not. From 40 on the smaller
// exponential is below the last place of the larger one.
Value TimesGrowing(Value a, Value y) {
  const Value root = exp(abs(y) * 0.5), grown = a * root;
  return grown * (root * 0.5);
}
Value TimesCosh(Value a, Value y) {
  const Value far = abs(y) > 40.0, grown = TimesGrowing(a, y);
  return select(far, grown, a * cosh(y));
}
Value TimesSinh(Value a, Value y) {
  const Value far = abs(y) > 40.0, grown = TimesGrowing(a, y);
  const Value negative = y < 0.0, signed_ = select(negative, -grown, grown);
  return select(far, signed_, a * sinh(y));
}

// The operands with the real or imaginary part in place of complex ones.
Values WithParts(ValueSpan in, int64_t part) {
  Values out;
  for (const Value& v : in) {
    const ComplexParts z = IsComplex(v) ? PartsOf(v) : ComplexParts{v, v};
    out.push_back(part == 0 ? z.re : z.im);
  }
  return out;
}

Values OnEach(const AnyOp& op, Function& f, ValueSpan in) {
  const Values re = f.Add(op, WithParts(in, 0)), im = f.Add(op, WithParts(in, 1));
  Values out;
  for (size_t i = 0; i < re.size(); ++i) out.push_back(Joined({re[i], im[i]}));
  return out;
}

// An op that is linear in each of its first two operands, and adds the others.
Values OnProduct(const AnyOp& op, Function& f, ValueSpan in) {
  const Values re = WithParts(in, 0), im = WithParts(in, 1);
  const auto product = [&](const Values& a, const Values& b, const Values* added) {
    Values operands{a[0], b[1]};
    if (added != nullptr) operands.insert(operands.end(), added->begin() + 2, added->end());
    return f.Add(op, operands)[0];
  };
  const Value rr = product(re, re, &re), ii = product(im, im, nullptr);
  const Value ri = product(re, im, &im), ir = product(im, re, nullptr);
  if (!f.status().ok()) return {rr};
  const Value difference = rr - ii;
  return {Joined({difference, ri + ir})};
}

Values OnScalar(const AnyOp& op, ValueSpan in) {
  const ScalarDef& scalar = *op.def().scalar;
  if (scalar.complex == nullptr) return {};
  std::array<ComplexParts, 3> x;
  for (size_t i = 0; i < in.size(); ++i) x[i] = PartsOf(in[i]);
  return {scalar.complex(op.self(), x.data())};
}

}  // namespace

Value PartOf(Value x, int64_t part) {
  const Dims shape = x.type().shape();
  const Value parts = (*x.fn)(ViewAsReal{}, {x});
  const Value one = (*x.fn)(Slice{.begin = {part}, .end = {part + 1}, .axes = {-1}}, {parts});
  return (*x.fn)(Reshape{shape}, {one});
}

Value FromParts(Value re, Value im) {
  Function& f = *re.fn;
  Dims column = re.type().shape();
  column.push_back(1);
  const Value a = f(Reshape{column}, {re}), b = f(Reshape{column}, {im});
  return f(ViewAsComplex{}, {f(Concat{.axis = -1}, {a, b})});
}

ComplexParts PartsOf(Value x) {
  if (!IsComplex(x)) return {x, {}};
  const Value re = (*x.fn)(Real{}, {x});
  return {re, (*x.fn)(Imag{}, {x})};
}

Value ZeroLike(Value v) {
  return (*v.fn)(Fill{.value = 0, .dtype = v.type().dtype(), .shape = v.type().shape()}, {});
}

Value Joined(ComplexParts z) { return z.im ? (*z.re.fn)(MakeComplex{}, {z.re, z.im}) : z.re; }

ComplexParts operator+(ComplexParts a, ComplexParts b) {
  const Value re = a.re + b.re;
  return {re, a.im + b.im};
}
ComplexParts operator+(ComplexParts a, double b) { return {a.re + b, a.im}; }
ComplexParts operator-(ComplexParts a, ComplexParts b) {
  const Value re = a.re - b.re;
  return {re, a.im - b.im};
}
ComplexParts operator-(ComplexParts a, double b) { return {a.re - b, a.im}; }
ComplexParts operator-(double a, ComplexParts b) {
  const Value re = a - b.re;
  return {re, -b.im};
}
ComplexParts operator-(ComplexParts a) {
  const Value re = -a.re;
  return {re, -a.im};
}
ComplexParts operator*(ComplexParts a, ComplexParts b) {
  const Value rr = a.re * b.re, ii = a.im * b.im, ri = a.re * b.im, ir = a.im * b.re;
  const Value re = rr - ii;
  return {re, ri + ir};
}
ComplexParts operator*(ComplexParts a, double b) {
  const Value re = a.re * b;
  return {re, a.im * b};
}

ComplexParts operator/(ComplexParts a, ComplexParts b) {
  const Value width = abs(b.re), height = abs(b.im), wide = AtLeast(width, height);
  const Value large = select(wide, b.re, b.im), small = select(wide, b.im, b.re);
  const Value ratio = small / large, divisor = large + small * ratio;
  const Value re_scaled = a.re * ratio, im_scaled = a.im * ratio;
  const Value re_wide = a.re + im_scaled, re_high = re_scaled + a.im;
  const Value im_wide = a.im - re_scaled, im_high = im_scaled - a.re;
  const Value re = select(wide, re_wide, re_high) / divisor;
  return {re, select(wide, im_wide, im_high) / divisor};
}
ComplexParts operator/(double a, ComplexParts b) {
  const Value zero = ZeroLike(b.re);
  return ComplexParts{zero + a, zero} / b;
}

Value operator==(ComplexParts a, ComplexParts b) {
  const Value re = Same(a.re, b.re);
  return Both(re, Same(a.im, b.im));
}

Value abs(ComplexParts z) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double largest = z.re.type().dtype() == DType::kF64 ? std::numeric_limits<double>::max()
                                                            : std::numeric_limits<float>::max();
  const Value width = abs(z.re), height = abs(z.im);
  const Value large = max(width, height), small = min(width, height);
  const Value ratio = select(Same(large, small), 1.0, small / large);
  const Value modulus = large * sqrt(1.0 + ratio * ratio);
  // An infinite part makes the modulus infinite, whatever the other is.
  const Value wide = width > largest, infinite = Either(wide, height > largest);
  return select(infinite, kInfinity, modulus);
}

ComplexParts select(ComplexParts p, ComplexParts a, ComplexParts b) {
  const Value re = select(p.re, a.re, b.re);
  return {re, select(p.re, a.im, b.im)};
}

ComplexParts convert(ComplexParts z, DType to) {
  const Value re = convert(z.re, RealOf(to));
  return {re, z.im ? convert(z.im, RealOf(to)) : ZeroLike(re)};
}

ComplexParts exp(ComplexParts z) {
  const Value root = exp(z.re * 0.5), cosine = cos(z.im), sine = sin(z.im);
  const Value re = root * cosine * root;
  return {re, root * sine * root};
}

ComplexParts log(ComplexParts z) {
  // Beside |z| = 1 the logarithm of the modulus is half that of 1 + (|x| - 1) (|x| + 1) + y^2, of
  // the larger part x.
  const Value width = abs(z.re), height = abs(z.im);
  const Value large = max(width, height), small = min(width, height);
  const Value below = large - 1.0, product = below * (large + 1.0);
  const Value rest = product + small * small;
  const Value above = large > 0.5, near = Both(above, large < 2.0);
  const Value half = log1p(select(near, rest, 0.0)) * 0.5, whole = log(abs(z));
  const Value re = select(near, half, whole);
  return {re, atan2(z.im, z.re)};
}

ComplexParts sqrt(ComplexParts z) {
  // t = sqrt((|z| + |re|) / 2); the other part is im / 2t.
  const Value modulus = abs(z) * 0.5, t = sqrt(modulus + abs(z.re) * 0.5);
  const Value height = abs(z.im), other = select(t > 0.0, height / (t * 2.0), t);
  const Value right = (*z.re.fn)(GreaterEqual{}, {z.re, ZeroLike(t)});
  const Value re = select(right, t, other), im = select(right, other, t);
  const Value negative = z.im < 0.0;
  return {re, select(negative, -im, im)};
}

ComplexParts sigmoid(ComplexParts z) {
  const Value right = AtLeast(z.re, ZeroLike(z.re));
  const Value turned = select(right, -z.im, z.im);
  const ComplexParts e = exp(ComplexParts{-abs(z.re), turned});
  const Value re = select(right, 1.0, e.re), im = select(right, 0.0, e.im);
  return ComplexParts{re, im} / (e + 1.0);
}

ComplexParts sin(ComplexParts z) {
  const Value sine = sin(z.re), cosine = cos(z.re);
  const Value re = TimesCosh(sine, z.im);
  return {re, TimesSinh(cosine, z.im)};
}

ComplexParts cos(ComplexParts z) {
  const Value sine = sin(z.re), cosine = cos(z.re);
  const Value re = TimesCosh(cosine, z.im);
  return {re, -TimesSinh(sine, z.im)};
}

ComplexParts tan(ComplexParts z) {  // -i tanh(i z)
  const ComplexParts turned = tanh(ComplexParts{-z.im, z.re});
  return {turned.im, -turned.re};
}

ComplexParts sinh(ComplexParts z) {
  const Value cosine = cos(z.im), sine = sin(z.im);
  const Value re = TimesSinh(cosine, z.re);
  return {re, TimesCosh(sine, z.re)};
}

ComplexParts cosh(ComplexParts z) {
  const Value cosine = cos(z.im), sine = sin(z.im);
  const Value re = TimesCosh(cosine, z.re);
  return {re, TimesSinh(sine, z.re)};
}

ComplexParts tanh(ComplexParts z) {
  // (sinh x cosh x + i sin y cos y) / (sinh^2 x + cos^2 y); beyond 20 it is 1 to all digits.
  const Value x = max(min(z.re, 20.0), -20.0);
  const Value s = sinh(x), c = cosh(x), sine = sin(z.im), cosine = cos(z.im);
  const Value squared = s * s, divisor = squared + cosine * cosine;
  const Value re = s * c / divisor;
  return {re, sine * cosine / divisor};
}

Values DecomposeComplex(const AnyOp& op, Function& f, ValueSpan in) {
  const OpDef& def = op.def();
  if (def.scalar != nullptr) return OnScalar(op, in);
  switch (def.on_complex != nullptr ? def.on_complex(op) : OnComplex::kNone) {
    case OnComplex::kEach:
      return OnEach(op, f, in);
    case OnComplex::kProduct:
      return OnProduct(op, f, in);
    case OnComplex::kNone:
      break;
  }
  return {};
}

}  // namespace forge::ir
