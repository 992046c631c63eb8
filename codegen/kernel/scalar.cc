// SPDX-License-Identifier: Apache-2.0
#include "codegen/kernel/scalar.h"

#include "codegen/kernel/literal.h"

namespace forge::codegen {
namespace {

// Repeats those that are scalars, as often as the others have lanes.
template <class... V>
void Align(V&... v) {
  const int lanes = std::max({v.type().lanes...});
  ((v = splat(v, lanes)), ...);
}

Val Binary(Code code, Val a, Val b, uint8_t aux = 0) {
  Align(a, b);
  const bool compares = Info(code).rule == TypeRule::kCompare;
  return a.b->Emit(code, compares ? a.type().With(DType::kBool) : a.type(), {a, b}, aux);
}

Val Unary(Code code, Val x) { return x.b->Emit(code, x.type(), {x}); }

bool Floats(Val v) { return IsFloat(v.type().elem); }

// The divisor with what Div does not take replaced by 1.
Val SafeDivisor(Val b) {
  const Val bad = IsSigned(b.type().elem) ? (b == 0.0) | (b == -1.0) : b == 0.0;
  return select(bad, 1.0, b);
}

// -1, which in unsigned types is all ones.
Val AllOnes(Val like) { return like.b->Bits(like.type(), ~uint64_t{0}); }

Val Shift(Code code, Val a, Val n, Val beyond) {
  const Val width = Like(BitWidth(a.type().elem), n);
  const Val fits = IsSigned(n.type().elem) ? (n < width) & (n >= 0.0) : n < width;
  return select(fits, Binary(code, a, select(fits, n, 0.0)), beyond);
}

}  // namespace

Val splat(Val x, int lanes) {
  if (x.type().lanes == lanes) return x;
  return x.b->Pack(x.type().Lanes(lanes), {&x, 1});
}

Val operator+(Val a, Val b) { return Binary(Code::kAdd, a, b); }
Val operator-(Val a, Val b) { return Binary(Code::kSub, a, b); }
Val operator*(Val a, Val b) { return Binary(Code::kMul, a, b); }
Val operator&(Val a, Val b) { return Binary(Code::kAnd, a, b); }
Val operator|(Val a, Val b) { return Binary(Code::kOr, a, b); }
Val operator^(Val a, Val b) { return Binary(Code::kXor, a, b); }
Val mul_high(Val a, Val b) { return Binary(Code::kMulHigh, a, b); }
Val max(Val a, Val b) { return Binary(Code::kMax, a, b); }
Val min(Val a, Val b) { return Binary(Code::kMin, a, b); }
Val operator==(Val a, Val b) { return Binary(Code::kEq, a, b); }
Val operator!=(Val a, Val b) { return ~(a == b); }
Val operator<(Val a, Val b) { return Binary(Code::kLt, a, b); }
Val operator<=(Val a, Val b) { return Binary(Code::kLe, a, b); }
Val operator>(Val a, Val b) { return b < a; }
Val operator>=(Val a, Val b) { return b <= a; }

Val operator/(Val a, Val b) {
  if (Floats(a)) return Binary(Code::kDiv, a, b);
  const Val q = Binary(Code::kDiv, a, SafeDivisor(b));
  const Val signed_q = IsSigned(a.type().elem) ? select(b == -1.0, -a, q) : q;
  return select(b == 0.0, AllOnes(signed_q), signed_q);
}

Val operator%(Val a, Val b) {
  if (IsSigned(a.type().elem)) return a - (a / b) * b;
  return select(b == 0.0, a, Binary(Code::kRem, a, SafeDivisor(b)));
}

Val operator<<(Val a, Val n) { return Shift(Code::kShl, a, n, Like(0, a)); }

Val operator>>(Val a, Val n) {
  if (!IsSigned(a.type().elem)) return Shift(Code::kShr, a, n, Like(0, a));
  return Shift(Code::kShr, a, n, Binary(Code::kShr, a, Like(BitWidth(a.type().elem) - 1, n)));
}

Val operator-(Val x) { return Unary(Code::kNeg, x); }
Val operator~(Val x) { return Unary(Code::kNot, x); }

Val select(Val condition, Val a, Val b) {
  Align(condition, a, b);
  return a.b->Emit(Code::kSelect, a.type(), {condition, a, b});
}

Val fma(Val a, Val b, Val c) {
  Align(a, b, c);
  if (!Floats(a)) return a * b + c;
  return a.b->Emit(Code::kFma, a.type(), {a, b, c});
}

Val abs(Val x) { return Floats(x) || IsSigned(x.type().elem) ? Unary(Code::kAbs, x) : x; }
Val sqrt(Val x) { return Unary(Code::kSqrt, x); }
Val rsqrt(Val x) { return Unary(Code::kRsqrt, x); }
Val native_exp2(Val x) { return Unary(Code::kExp2, x); }
Val native_log2(Val x) { return Unary(Code::kLog2, x); }
Val native_sin(Val x) { return Unary(Code::kSin, x); }
Val native_cos(Val x) { return Unary(Code::kCos, x); }
Val floor(Val x) { return Floats(x) ? Unary(Code::kFloor, x) : x; }
Val round_even(Val x) { return Floats(x) ? Unary(Code::kRoundEven, x) : x; }
Val isnan(Val x) { return x != x; }

// The sum's low bits are x + bias: the exponent of the result, once they are where exponents stand.
Val exp2_int(Val x) {
  const bool wide = x.type().elem == DType::kF64;
  const Val sum = x + (wide ? 0x1.8p52 + 1023 : 0x1.8p23 + 127);
  const Val bits = bitcast(sum, wide ? DType::kU64 : DType::kU32);
  return bitcast(Binary(Code::kShl, bits, Like(wide ? 52 : 23, bits)), x.type().elem);
}

// By bits: of a float's sign no other instruction tells on a device that drops it.
Val nearest_exponent(Val x) {
  const bool wide = x.type().elem == DType::kF64;
  const Val bits = bitcast(x, wide ? DType::kI64 : DType::kI32);
  const Val above =
      bits - x.b->Bits(bits.type(), wide ? uint64_t{0x3fe6a09e667f3bcd} : uint64_t{0x3f3504f3});
  return convert(Binary(Code::kShr, above, Like(wide ? 52 : 23, above)), x.type().elem);
}

Val high_half(Val x) {
  const bool wide = x.type().elem == DType::kF64;
  const Val bits = bitcast(x, wide ? DType::kU64 : DType::kU32);
  const Val mask = x.b->Bits(bits.type(), ~uint64_t{wide ? 0x7ffffffu : 0xfffu});
  return bitcast(bits & mask, x.type().elem);
}

Val copysign(Val magnitude, Val sign) {
  const DType word = sign.type().elem == DType::kF64 ? DType::kI64 : DType::kI32;
  const Val a = abs(magnitude);
  return select(bitcast(sign, word) < 0.0, -a, a);
}

Val convert(Val x, DType to) { return x.b->Convert(x, to); }
Val bitcast(Val x, DType to) { return x.b->Emit(Code::kBitcast, x.type().With(to), {x}); }

Val QuotientOf(Val a, Val b) { return Binary(Code::kDiv, a, b, kNonNegative); }
Val RemainderOf(Val a, Val b) { return Binary(Code::kRem, a, b, kNonNegative); }

}  // namespace forge::codegen
