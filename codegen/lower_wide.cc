// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "codegen/literal.h"
#include "codegen/lower_rules.h"
#include "codegen/scalar.h"

namespace forge::codegen {
namespace {

Type Halves(const Type& t) { return kU32.Lanes(t.lanes); }

Val Signed(Val x) { return bitcast(x, DType::kI32); }

}  // namespace

bool HasHalves(const Kernel& k, const Inst& i) {
  return !IsOneOf(i.code,
                  {Code::kMulHigh, Code::kAtomic, Code::kSubgroupReduce, Code::kSubgroupScan}) ||
         !IsWide(k.TypeOf(i.result));
}

View HalvesView(View v) {
  if (!IsWide(v.elem)) return v;
  v.extent *= v.elem.lanes == 4 ? 2 : 1;
  v.elem = kU32.Lanes(v.elem.lanes == 1 ? 2 : 4);
  return v;
}

// ---- arithmetic ---------------------------------------------------------------------------------

Wide WideRules::Literal(const Type& t, uint64_t bits) const {
  return {b.Bits(Halves(t), bits & 0xffffffff), b.Bits(Halves(t), bits >> 32)};
}

Wide WideRules::Add(Wide x, Wide y) const {
  const Val lo = x.lo + y.lo;
  const Val carry = select(lo < x.lo, U32(lo, 1), U32(lo, 0));
  return {lo, x.hi + y.hi + carry};
}

Wide WideRules::Sub(Wide x, Wide y) const {
  const Val borrow = select(x.lo < y.lo, U32(x.lo, 1), U32(x.lo, 0));
  return {x.lo - y.lo, x.hi - y.hi - borrow};
}

Wide WideRules::Mul(Wide x, Wide y) const {
  const Val high = Raw(Code::kMulHigh, x.lo, y.lo);
  return {x.lo * y.lo, high + x.lo * y.hi + x.hi * y.lo};
}

Wide WideRules::Neg(Wide x) const { return Sub({U32(x.lo, 0), U32(x.lo, 0)}, x); }

// What moves from one half to the other is shifted in two steps: none of them by 32.
Wide WideRules::Shl(Wide x, Val n) const {
  const Val by = n & 31, rest = U32(n, 31) - by, far = n >= 32;
  const Val across = Raw(Code::kShr, Raw(Code::kShr, x.lo, U32(n, 1)), rest);
  const Val lo = Raw(Code::kShl, x.lo, by);
  const Val hi = Raw(Code::kShl, x.hi, by) | across;
  return {select(far, 0, lo), select(far, lo, hi)};
}

Wide WideRules::Shr(Wide x, Val n, bool is_signed) const {
  const Val by = n & 31, rest = U32(n, 31) - by, far = n >= 32;
  const Val across = Raw(Code::kShl, Raw(Code::kShl, x.hi, U32(n, 1)), rest);
  const Val lo = Raw(Code::kShr, x.lo, by) | across;
  const auto shifted = [&](Val amount) {
    if (!is_signed) return Raw(Code::kShr, x.hi, amount);
    return bitcast(Raw(Code::kShr, Signed(x.hi), Signed(amount)), DType::kU32);
  };
  const Val hi = shifted(by), beyond = is_signed ? shifted(U32(n, 31)) : U32(n, 0);
  return {select(far, hi, lo), select(far, beyond, hi)};
}

Val WideRules::Eq(Wide x, Wide y) const { return (x.lo == y.lo) & (x.hi == y.hi); }

Val WideRules::Lt(Wide x, Wide y, bool is_signed) const {
  const Val high = is_signed ? Signed(x.hi) < Signed(y.hi) : x.hi < y.hi;
  return high | ((x.hi == y.hi) & (x.lo < y.lo));
}

Wide WideRules::Select(Val condition, Wide x, Wide y) const {
  return {select(condition, x.lo, y.lo), select(condition, x.hi, y.hi)};
}

// Bit by bit; the quotient grows where the dividend leaves. A remainder of 64 bits may grow beyond
// them for a moment, hence `carry`. Lanes run together.
WideRules::Division WideRules::Divide(Wide x, Wide y) const {
  const Val zero = U32(x.lo, 0), one = U32(x.lo, 1);
  const Vals out =
      b.For({b.Int(0), b.Int(64), b.Int(1)}, {x.lo, x.hi, zero, zero}, [&](Val, const Vals& v) {
        const Val carry = v[3] >= 0x1p31;
        Wide rest = Shl({v[2], v[3]}, one);
        rest.lo = rest.lo | Raw(Code::kShr, v[1], U32(v[1], 31));
        const Val fits = carry | ~Lt(rest, y, false);
        rest = Select(fits, Sub(rest, y), rest);
        const Wide next = Shl({v[0], v[1]}, one);
        return Vals{next.lo | select(fits, one, zero), next.hi, rest.lo, rest.hi};
      });
  return {{out[0], out[1]}, {out[2], out[3]}};
}

Wide WideRules::DivideSigned(Code code, Wide x, Wide y) const {
  const Val x_negative = Signed(x.hi) < 0, y_negative = Signed(y.hi) < 0;
  const Division d = Divide(Select(x_negative, Neg(x), x), Select(y_negative, Neg(y), y));
  if (code == Code::kRem) return Select(x_negative, Neg(d.remainder), d.remainder);
  return Select(x_negative ^ y_negative, Neg(d.quotient), d.quotient);
}

Wide WideRules::EachHalf(const Inst& i, const Type& type, std::span<const Wide> x) const {
  Vals lo, hi;
  for (const Wide& v : x) lo.push_back(v.lo), hi.push_back(v.hi ? v.hi : v.lo);
  return {b.Add(i, Halves(type), lo), b.Add(i, Halves(type), hi)};
}

// ---- conversions --------------------------------------------------------------------------------

Wide WideRules::Extend(Val x) const {
  const Type t = Halves(x.type());
  if (x.type().elem == DType::kBool) return {select(x, U32(x, 1), U32(x, 0)), b.Bits(t, 0)};
  const Val whole = b.Convert(x, IsSigned(x.type().elem) ? DType::kI32 : DType::kU32);
  const Val sign = IsSigned(x.type().elem) ? bitcast(whole >> 31.0, DType::kU32) : b.Bits(t, 0);
  return {bitcast(whole, DType::kU32), sign};
}

// Halves of the magnitude are exact in the float's own digits.
Wide WideRules::FromFloat(Val x, const Type& to) const {
  const bool is_signed = IsSigned(to.elem);
  const double high = std::ldexp(1.0, is_signed ? 63 : 64);
  const Val above = x >= high, below = is_signed ? x < -high : x <= 0.0;
  const Val magnitude = select(above | below | rules.IsNan(x), 0.0, abs(x));
  const Val upper = floor(magnitude * 0x1p-32);
  const auto word = [&](Val v) { return b.Convert(v, DType::kU32); };
  Wide out{word(magnitude - upper * 0x1p32), word(upper)};
  if (is_signed) out = Select(x < 0.0, Neg(out), out);
  out = Select(above, Literal(to, is_signed ? INT64_MAX : UINT64_MAX), out);
  return is_signed ? Select(below, Literal(to, uint64_t{1} << 63), out) : out;
}

// The highest 32 bits that count, the lowest of them also standing for all below it: rounded once.
Val WideRules::ToFloat(Wide x, const Type& to, bool is_signed) const {
  const Val negative = Signed(x.hi) < 0;
  if (is_signed) x = Select(negative, Neg(x), x);
  Val shift = U32(x.lo, 0);  // leading zeros
  for (uint32_t step = 32; step > 0; step /= 2) {
    const Val empty = step == 32 ? x.hi == 0 : Raw(Code::kShr, x.hi, U32(x.hi, 32 - step)) == 0;
    x = Select(empty, Shl(x, U32(x.lo, step)), x);
    shift = shift + select(empty, U32(shift, step), U32(shift, 0));
  }
  const Val sticky = select(x.lo == 0, x.hi, x.hi | U32(x.hi, 1));
  const Val top = b.Convert(to.elem == DType::kF64 ? x.hi : sticky, to.elem);
  const Val scale = b.Convert(exp2_int(64.0 - b.Convert(shift, DType::kF32)), to.elem);
  Val out = top * (scale * 0x1p-32);
  if (to.elem == DType::kF64) out = out + b.Convert(x.lo, to.elem) * (scale * 0x1p-64);
  return is_signed ? select(negative, -out, out) : out;
}

Wide WideRules::Convert(const Type& from, const Type& to, Wide x) const {
  if (!x.hi) {
    if (!IsFloat(from.elem)) return Extend(x.lo);
    return FromFloat(from.elem == DType::kF16 ? b.Convert(x.lo, DType::kF32) : x.lo, to);
  }
  if (IsWide(to)) return x;
  if (to.elem == DType::kBool) return {(x.lo | x.hi) != 0, {}};
  if (IsInt(to.elem)) return {b.Convert(x.lo, to.elem), {}};
  const bool half = to.elem == DType::kF16;
  const Val v = ToFloat(x, half ? to.With(DType::kF32) : to, IsSigned(from.elem));
  return {half ? b.Convert(v, DType::kF16) : v, {}};
}

// To or from f64, lane by lane.
Wide WideRules::Bitcast(const Type& to, Wide x) const {
  if (x.hi && IsWide(to)) return x;
  Vals parts, lo, hi;
  for (int n = 0; n < to.lanes; ++n) {
    if (x.hi) {
      const Val halves[] = {b.Extract(x.lo, n), b.Extract(x.hi, n)};
      parts.push_back(b.Emit(Code::kBitcast, to.Lanes(1), {b.Pack(kU32.Lanes(2), halves)}));
    } else {
      const Val halves = b.Emit(Code::kBitcast, kU32.Lanes(2), {b.Extract(x.lo, n)});
      lo.push_back(b.Extract(halves, 0)), hi.push_back(b.Extract(halves, 1));
    }
  }
  if (x.hi) return {b.Pack(to, parts), {}};
  return {b.Pack(Halves(to), lo), b.Pack(Halves(to), hi)};
}

// ---- memory
// --------------------------------------------------------------------------------------

Wide WideRules::Load(uint16_t view, Val index, int lanes) const {
  Vals words;
  for (int part = 0; part < (lanes == 4 ? 2 : 1); ++part) {
    const Val v = b.Load(view, lanes == 4 ? index * 2 + part : index);
    for (int n = 0; n < v.type().lanes; ++n) words.push_back(b.Extract(v, n));
  }
  Vals lo, hi;
  for (int n = 0; n < lanes; ++n) lo.push_back(words[2 * n]), hi.push_back(words[2 * n + 1]);
  return {b.Pack(kU32.Lanes(lanes), lo), b.Pack(kU32.Lanes(lanes), hi)};
}

void WideRules::Store(uint16_t view, Val index, Wide value) const {
  const int lanes = value.lo.type().lanes, each = lanes == 1 ? 1 : 2;
  for (int part = 0; part < lanes / each; ++part) {
    Vals words;
    for (int n = part * each; n < (part + 1) * each; ++n) {
      words.push_back(b.Extract(value.lo, n));
      words.push_back(b.Extract(value.hi, n));
    }
    const Val at = lanes == 4 ? index * 2 + part : index;
    b.Store(view, at, b.Pack(kU32.Lanes(2 * each), words));
  }
}

// ---- the switch ---------------------------------------------------------------------------------

Wide WideRules::Apply(const Kernel& k, const Inst& i, std::span<const Wide> x) const {
  const Type type = IsSilent(i.code) ? Type{} : k.TypeOf(i.result);
  const Type from = x.empty() ? type : k.TypeOf(k.ArgsOf(i)[0]);
  const bool is_signed = IsSigned(from.elem);
  switch (i.code) {
    case Code::kLiteral:
      return Literal(type, i.literal);
    case Code::kAdd:
      return Add(x[0], x[1]);
    case Code::kSub:
      return Sub(x[0], x[1]);
    case Code::kMul:
      return Mul(x[0], x[1]);
    case Code::kDiv:
      return is_signed ? DivideSigned(i.code, x[0], x[1]) : Divide(x[0], x[1]).quotient;
    case Code::kRem:
      return is_signed ? DivideSigned(i.code, x[0], x[1]) : Divide(x[0], x[1]).remainder;
    case Code::kMin:
      return Select(Lt(x[0], x[1], is_signed), x[0], x[1]);
    case Code::kMax:
      return Select(Lt(x[0], x[1], is_signed), x[1], x[0]);
    case Code::kShl:
      return Shl(x[0], x[1].lo);
    case Code::kShr:
      return Shr(x[0], x[1].lo, is_signed);
    case Code::kNeg:
      return Neg(x[0]);
    case Code::kAbs:
      return Select(Signed(x[0].hi) < 0, Neg(x[0]), x[0]);
    case Code::kEq:
      return {Eq(x[0], x[1]), {}};
    case Code::kLt:
      return {Lt(x[0], x[1], is_signed), {}};
    case Code::kLe:
      return {~Lt(x[1], x[0], is_signed), {}};
    case Code::kConvert:
      return Convert(from, type, x[0]);
    case Code::kBitcast:
      return Bitcast(type, x[0]);
    case Code::kLoad:
      return Load(i.view, x[0].lo, type.lanes);
    case Code::kStore:
      Store(i.view, x[0].lo, x[1]);
      return {};
    default:
      return EachHalf(i, type, x);
  }
}

}  // namespace forge::codegen
