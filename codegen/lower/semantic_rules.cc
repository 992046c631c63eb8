// SPDX-License-Identifier: Apache-2.0
#include "codegen/lower/semantic_rules.h"

#include <algorithm>
#include <cmath>

#include "codegen/kernel/literal.h"
#include "codegen/kernel/scalar.h"

namespace forge::codegen {

Val IsNan(const Caps& caps, Val x) {
  if (caps.signed_zero_inf_nan || x.type().elem != DType::kF32) return isnan(x);
  const Val bits = bitcast(x, DType::kU32);
  return (bits & Like(0x7fffffff, bits)) > Like(0x7f800000, bits);
}

namespace {

// Min or Max of floats.
Val Extreme(const Caps& caps, Code code, Val a, Val b) {
  const auto literal = b.b->LiteralOf(b);
  const bool no_nan = literal && !std::isnan(FloatOf(b.type().elem, *literal));
  if (!caps.signed_zero_inf_nan && a.type().elem == DType::kF32) {
    const Val plain = a.b->Emit(code, a.type(), {a, b});
    const Val right = no_nan ? plain : select(IsNan(caps, b), b, plain);
    return select(IsNan(caps, a), a, right);
  }
  const Val second = code == Code::kMax ? a <= b : b <= a;  // false for NaN, which gives `a`
  return select(no_nan ? second : second | IsNan(caps, b), b, a);
}

// ---- products with literals of 0 ----------------------------------------------------------------

// Drivers fold a product with a literal 0, and a quotient by one, although they are told to keep
// NaN, infinity and -0. So these are made of the bits of the other factor, which is an f32.
constexpr uint32_t kSignBit = 0x80000000, kMagnitude = 0x7fffffff, kInfinite = 0x7f800000,
                   kQuietNan = 0x7fc00000;

struct F32Bits {
  explicit F32Bits(Val x)
      : bits(bitcast(x, DType::kU32)),
        magnitude(bits & Like(kMagnitude, bits)),
        zero_or_nan((magnitude == Like(0, bits)) | (magnitude > Like(kInfinite, bits))) {}
  // Of the sign that a product with `literal` has.
  Val Signed(uint64_t literal, uint32_t magnitude_bits) const {
    const Val sign = (bits ^ Like(static_cast<double>(literal), bits)) & Like(kSignBit, bits);
    return sign | Like(magnitude_bits, bits);
  }
  Val Unless(Val nan, Val number) const {
    return bitcast(select(nan, Like(kQuietNan, bits), number), DType::kF32);
  }
  Val TimesZero(uint64_t zero) const {
    return Unless(magnitude >= Like(kInfinite, bits), Signed(zero, 0));
  }
  Val OverZero(uint64_t zero) const { return Unless(zero_or_nan, Signed(zero, kInfinite)); }
  Val IntoZero(uint64_t zero) const { return Unless(zero_or_nan, Signed(zero, 0)); }

  Val bits, magnitude, zero_or_nan;
};

bool IsZero(std::optional<uint64_t> f32) { return f32 && (*f32 & kMagnitude) == 0; }

// Nothing when the driver may have it.
Val Product(Val x, Val y) {
  const auto lx = x.b->LiteralOf(x), ly = y.b->LiteralOf(y);
  if (IsZero(ly)) return F32Bits(x).TimesZero(*ly);
  return IsZero(lx) ? F32Bits(y).TimesZero(*lx) : Val{};
}

// The largest divisor whose reciprocal is a normal number, and what brings larger ones below it.
constexpr double kLargestDivisor = 0x1p126, kScale = 0.25;

Val ScaledQuotient(Val x, Val y) {
  const Val scale = select(abs(y) > kLargestDivisor, Like(kScale, y), Like(1, y));
  const auto scaled = [&](Val v) { return v.b->Emit(Code::kMul, v.type(), {v, scale}, kPrecise); };
  return x.b->Emit(Code::kDiv, x.type(), {scaled(x), scaled(y)}, kPrecise);
}

Val Quotient(const Caps& caps, Val x, Val y) {
  const auto lx = x.b->LiteralOf(x), ly = y.b->LiteralOf(y);
  if (IsZero(lx)) return F32Bits(y).IntoZero(*lx);
  if (IsZero(ly)) return F32Bits(x).OverZero(*ly);
  // Some drivers multiply by the reciprocal.
  if (ly && (*ly & kMagnitude) == kInfinite) return F32Bits(x).TimesZero(*ly & kSignBit);
  const bool small = ly && std::abs(FloatOf(DType::kF32, *ly)) <= kLargestDivisor;
  return caps.large_divisors || small ? Val{} : ScaledQuotient(x, y);
}

Val ProductAndSum(Val x, Val y, Val z) {
  const Val product = Product(x, y);
  return product ? x.b->Emit(Code::kAdd, z.type(), {product, z}, kPrecise) : Val{};
}

// To 32 bits or more. Converts what is in range; the rest is picked by comparisons, which NaN
// fails.
Val FloatToInt(const Caps& caps, Val x, const Type& to) {
  Builder& b = *x.b;
  const bool is_signed = IsSigned(to.elem);
  const int bits = BitWidth(to.elem) - (is_signed ? 1 : 0);
  const double high = std::ldexp(1.0, bits);  // the first beyond
  const Val above = x >= high;
  const Val inside = (is_signed ? x >= -high : x > 0.0) & ~above;
  const Val number = caps.signed_zero_inf_nan ? inside : inside & ~IsNan(caps, x);
  const Val converted = b.Emit(Code::kConvert, to, {select(number, x, 0.0)});
  const Val out = select(above, b.Bits(to, ~uint64_t{0} >> (64 - bits)), converted);
  return is_signed ? select(x < -high, b.Bits(to, ~uint64_t{0} << bits), out) : out;
}

// Without 8- and 16-bit arithmetic only the width may change; the kind changes at 32 bits.
// Nothing when SPIR-V's will do.
Val Convert(const Caps& caps, Val x, const Type& to) {
  Builder& b = *x.b;
  const Type& from = x.type();
  const auto kind = [](DType t) { return t == DType::kBool ? 0 : IsFloat(t) ? 1 : 2; };
  if (kind(from.elem) == kind(to.elem)) return {};
  const auto converted = [&](Val from, const Type& to) {
    const Val v = Convert(caps, from, to);
    return v ? v : b.Convert(from, to.elem);
  };
  if (ComputeType(from.elem) != from.elem)
    return converted(b.Convert(x, ComputeType(from.elem)), to);
  if (ComputeType(to.elem) != to.elem) {
    Val v = converted(x, to.With(ComputeType(to.elem)));
    if (IsFloat(from.elem)) {  // saturates twice
      const int bits = BitWidth(to.elem) - (IsSigned(to.elem) ? 1 : 0);
      v = min(max(v, IsSigned(to.elem) ? -std::ldexp(1.0, bits) : 0.0), std::ldexp(1.0, bits) - 1);
    }
    return b.Convert(v, to.elem);
  }
  return IsFloat(from.elem) && IsInt(to.elem) ? FloatToInt(caps, x, to) : Val{};
}

// As integers in the order of the floats, NaN beyond all of them.
Val SubgroupExtreme(const Caps& caps, const Inst& i, Val x) {
  const auto in_order = [](Val bits) { return bits ^ ((bits >> 31.0) & Like(0x7fffffff, bits)); };
  const bool max = static_cast<ReduceKind>(i.aux) == ReduceKind::kMax;
  const Val bits = bitcast(x, DType::kI32);
  const Val key = select(IsNan(caps, x), max ? 0x1p31 : -0x1p31, in_order(bits));
  return bitcast(in_order(x.b->Add(i, key.type(), {key})), DType::kF32);
}

// Of f64: a driver truncates those that lie between two integers.
Val SpelledRoundEven(Val x) {
  const Val below = floor(x), part = x - below, half = below * 0.5;
  const Val up = (part > 0.5) | ((part == Like(0.5, x)) & (half > floor(half)));
  return copysign(select(up, below + 1.0, below), x);
}

Val SpelledDot4(DotKind kind, std::span<const Val> x) {
  const auto byte = [&](Val word, int n, bool is_signed) {
    const Val high = word << (24.0 - 8 * n);
    const Val v = is_signed ? bitcast(high, DType::kI32) : high;
    return bitcast(v >> 24.0, x[2].type().elem);
  };
  Val sum = x[2];
  for (int n = 0; n < 4; ++n)
    sum = sum + byte(x[0], n, kind != DotKind::kUnsigned) * byte(x[1], n, kind == DotKind::kSigned);
  return sum;
}

}  // namespace

Val SemanticRule(const Caps& caps, const Inst& i, const Type& type, std::span<const Val> x) {
  const bool floats = !x.empty() && IsFloat(x[0].type().elem);
  switch (i.code) {
    case Code::kMul:
      return type.elem == DType::kF32 ? Product(x[0], x[1]) : Val{};
    case Code::kDiv:
      return type.elem == DType::kF32 ? Quotient(caps, x[0], x[1]) : Val{};
    case Code::kFma:
      return type.elem == DType::kF32 ? ProductAndSum(x[0], x[1], x[2]) : Val{};
    case Code::kMin:
    case Code::kMax:
      return floats && (i.aux & kPrecise) ? Extreme(caps, i.code, x[0], x[1]) : Val{};
    case Code::kRoundEven:
      return type.elem == DType::kF64 ? SpelledRoundEven(x[0]) : Val{};
    case Code::kEq:
      return floats && x[0].id == x[1].id ? ~IsNan(caps, x[0]) : Val{};
    case Code::kConvert:
      return Convert(caps, x[0], type);
    case Code::kRem:
      if (!IsSigned(type.elem) || (i.aux & kNonNegative)) return {};
      return x[0] - x[0].b->Emit(Code::kDiv, type, {x[0], x[1]}) * x[1];
    case Code::kSubgroupReduce:
    case Code::kSubgroupScan: {
      const auto kind = static_cast<ReduceKind>(i.aux);
      const bool extreme = kind == ReduceKind::kMin || kind == ReduceKind::kMax;
      return extreme && type.elem == DType::kF32 ? SubgroupExtreme(caps, i, x[0]) : Val{};
    }
    case Code::kDot4:
      return caps.int_dot ? Val{} : SpelledDot4(static_cast<DotKind>(i.aux), x);
    default:
      return {};
  }
}

}  // namespace forge::codegen
