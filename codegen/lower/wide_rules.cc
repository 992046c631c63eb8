// SPDX-License-Identifier: Apache-2.0
#include "codegen/lower/wide_rules.h"

#include <cmath>

#include "codegen/kernel/literal.h"
#include "codegen/kernel/scalar.h"
#include "codegen/lower/semantic_rules.h"

namespace forge::codegen {
namespace {

Type Halves(const Type& t) { return kU32.Lanes(t.lanes); }

Val Signed(Val x) { return bitcast(x, DType::kI32); }

// Neither shifts by the width or more nor divides by 0.
Val Raw(Code code, Val x, Val y) { return x.b->Emit(code, x.type(), {x, y}); }

// ---- arithmetic ---------------------------------------------------------------------------------

Wide Literal(Builder& b, const Type& t, uint64_t bits) {
  return {b.Bits(Halves(t), bits & 0xffffffff), b.Bits(Halves(t), bits >> 32)};
}

Wide Add(Wide x, Wide y) {
  const Val lo = x.lo + y.lo;
  const Val carry = select(lo < x.lo, Like(1, lo), Like(0, lo));
  return {lo, x.hi + y.hi + carry};
}

Wide Sub(Wide x, Wide y) {
  const Val borrow = select(x.lo < y.lo, Like(1, x.lo), Like(0, x.lo));
  return {x.lo - y.lo, x.hi - y.hi - borrow};
}

Wide Mul(Wide x, Wide y) {
  const Val high = Raw(Code::kMulHigh, x.lo, y.lo);
  return {x.lo * y.lo, high + x.lo * y.hi + x.hi * y.lo};
}

Wide Neg(Wide x) { return Sub({Like(0, x.lo), Like(0, x.lo)}, x); }

// What moves from one half to the other is shifted in two steps: none of them by 32.
Wide Shl(Wide x, Val n) {
  const Val by = n & 31, rest = Like(31, n) - by, far = n >= 32;
  const Val across = Raw(Code::kShr, Raw(Code::kShr, x.lo, Like(1, n)), rest);
  const Val lo = Raw(Code::kShl, x.lo, by);
  const Val hi = Raw(Code::kShl, x.hi, by) | across;
  return {select(far, 0, lo), select(far, lo, hi)};
}

Wide Shr(Wide x, Val n, bool is_signed) {
  const Val by = n & 31, rest = Like(31, n) - by, far = n >= 32;
  const Val across = Raw(Code::kShl, Raw(Code::kShl, x.hi, Like(1, n)), rest);
  const Val lo = Raw(Code::kShr, x.lo, by) | across;
  const auto shifted = [&](Val amount) {
    if (!is_signed) return Raw(Code::kShr, x.hi, amount);
    return bitcast(Raw(Code::kShr, Signed(x.hi), Signed(amount)), DType::kU32);
  };
  const Val hi = shifted(by), beyond = is_signed ? shifted(Like(31, n)) : Like(0, n);
  return {select(far, hi, lo), select(far, beyond, hi)};
}

Val Eq(Wide x, Wide y) { return (x.lo == y.lo) & (x.hi == y.hi); }

Val Lt(Wide x, Wide y, bool is_signed) {
  const Val high = is_signed ? Signed(x.hi) < Signed(y.hi) : x.hi < y.hi;
  return high | ((x.hi == y.hi) & (x.lo < y.lo));
}

Wide Select(Val condition, Wide x, Wide y) {
  return {select(condition, x.lo, y.lo), select(condition, x.hi, y.hi)};
}

struct Division {
  Wide quotient, remainder;
};
// Unsigned, y above 0. Bit by bit; the quotient grows where the dividend leaves. A remainder of 64
// bits may grow beyond them for a moment, hence `carry`. Lanes run together.
Division Divide(Wide x, Wide y) {
  Builder& b = *x.lo.b;
  const Val zero = Like(0, x.lo), one = Like(1, x.lo);
  const Vals out =
      b.For({b.Int(0), b.Int(64), b.Int(1)}, {x.lo, x.hi, zero, zero}, [&](Val, const Vals& v) {
        const Val carry = v[3] >= 0x1p31;
        Wide rest = Shl({v[2], v[3]}, one);
        rest.lo = rest.lo | Raw(Code::kShr, v[1], Like(31, v[1]));
        const Val fits = carry | ~Lt(rest, y, false);
        rest = Select(fits, Sub(rest, y), rest);
        const Wide next = Shl({v[0], v[1]}, one);
        return Vals{next.lo | select(fits, one, zero), next.hi, rest.lo, rest.hi};
      });
  return {{out[0], out[1]}, {out[2], out[3]}};
}

// The same instruction of the low halves and of the high ones; what is whole takes part in both.
Wide EachHalf(const Inst& i, const Type& type, std::span<const Wide> x) {
  Builder& b = *x[0].lo.b;
  Vals lo, hi;
  for (const Wide& v : x) lo.push_back(v.lo), hi.push_back(v.hi ? v.hi : v.lo);
  return {b.Add(i, Halves(type), lo), b.Add(i, Halves(type), hi)};
}

// ---- conversions --------------------------------------------------------------------------------

// Integers of up to 32 bits, and bool.
Wide Extend(Val x) {
  Builder& b = *x.b;
  const Type t = Halves(x.type());
  if (x.type().elem == DType::kBool) return {select(x, b.Bits(t, 1), b.Bits(t, 0)), b.Bits(t, 0)};
  const Val whole = convert(x, IsSigned(x.type().elem) ? DType::kI32 : DType::kU32);
  const Val sign = IsSigned(x.type().elem) ? bitcast(whole >> 31.0, DType::kU32) : b.Bits(t, 0);
  return {bitcast(whole, DType::kU32), sign};
}

// Halves of the magnitude are exact in the float's own digits.
Wide FromFloat(const Caps& caps, Val x, const Type& to) {
  Builder& b = *x.b;
  const bool is_signed = IsSigned(to.elem);
  const double high = std::ldexp(1.0, is_signed ? 63 : 64);
  const Val above = x >= high, below = is_signed ? x < -high : x <= 0.0;
  const Val magnitude = select(above | below | IsNan(caps, x), 0.0, abs(x));
  const Val upper = floor(magnitude * 0x1p-32);
  Wide out{convert(magnitude - upper * 0x1p32, DType::kU32), convert(upper, DType::kU32)};
  if (is_signed) out = Select(x < 0.0, Neg(out), out);
  out = Select(above, Literal(b, to, is_signed ? INT64_MAX : UINT64_MAX), out);
  return is_signed ? Select(below, Literal(b, to, uint64_t{1} << 63), out) : out;
}

// The highest 32 bits that count, the lowest of them also standing for all below it: rounded once.
Val ToFloat(Wide x, const Type& to, bool is_signed) {
  const Val negative = Signed(x.hi) < 0;
  if (is_signed) x = Select(negative, Neg(x), x);
  Val shift = Like(0, x.lo);  // leading zeros
  for (uint32_t step = 32; step > 0; step /= 2) {
    const Val empty = step == 32 ? x.hi == 0 : Raw(Code::kShr, x.hi, Like(32 - step, x.hi)) == 0;
    x = Select(empty, Shl(x, Like(step, x.lo)), x);
    shift = shift + select(empty, Like(step, shift), Like(0, shift));
  }
  const Val sticky = select(x.lo == 0, x.hi, x.hi | Like(1, x.hi));
  const Val top = convert(to.elem == DType::kF64 ? x.hi : sticky, to.elem);
  const Val scale = convert(exp2_int(64.0 - convert(shift, DType::kF32)), to.elem);
  Val out = top * (scale * 0x1p-32);
  if (to.elem == DType::kF64) out = out + convert(x.lo, to.elem) * (scale * 0x1p-64);
  return is_signed ? select(negative, -out, out) : out;
}

Wide Convert(const Caps& caps, const WideInst& w, Wide x) {
  const Type &from = w.from, &to = w.type;
  if (!x.hi) {
    if (!IsFloat(from.elem)) return Extend(x.lo);
    return FromFloat(caps, from.elem == DType::kF16 ? convert(x.lo, DType::kF32) : x.lo, to);
  }
  if (IsWide(to)) return x;
  if (to.elem == DType::kBool) return {(x.lo | x.hi) != 0, {}};
  if (IsInt(to.elem)) return {convert(x.lo, to.elem), {}};
  const bool half = to.elem == DType::kF16;
  const Val v = ToFloat(x, half ? to.With(DType::kF32) : to, IsSigned(from.elem));
  return {half ? convert(v, DType::kF16) : v, {}};
}

// To or from f64, lane by lane.
Wide Bitcast(const Type& to, Wide x) {
  if (x.hi && IsWide(to)) return x;
  Builder& b = *x.lo.b;
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

// ---- memory: see HalvesView ---------------------------------------------------------------------

Wide Load(const VulkanRules& rules, uint16_t view, Val index, int lanes) {
  Builder& b = rules.b;
  Vals words;
  for (int part = 0; part < (lanes == 4 ? 2 : 1); ++part) {
    const Val at = lanes == 4 ? index * 2 + part : index;
    const Val v =
        rules.Add({.code = Code::kLoad, .view = view}, b.kernel().views[view].elem, {&at, 1});
    for (int n = 0; n < v.type().lanes; ++n) words.push_back(b.Extract(v, n));
  }
  Vals lo, hi;
  for (int n = 0; n < lanes; ++n) lo.push_back(words[2 * n]), hi.push_back(words[2 * n + 1]);
  return {b.Pack(kU32.Lanes(lanes), lo), b.Pack(kU32.Lanes(lanes), hi)};
}

Wide Store(const VulkanRules& rules, uint16_t view, Val index, Wide value) {
  Builder& b = rules.b;
  const int lanes = value.lo.type().lanes, each = lanes == 1 ? 1 : 2;
  for (int part = 0; part < lanes / each; ++part) {
    Vals words;
    for (int n = part * each; n < (part + 1) * each; ++n) {
      words.push_back(b.Extract(value.lo, n));
      words.push_back(b.Extract(value.hi, n));
    }
    const Val at = lanes == 4 ? index * 2 + part : index;
    const Val args[] = {at, b.Pack(kU32.Lanes(2 * each), words)};
    rules.Add({.code = Code::kStore, .view = view}, {}, args);
  }
  return {};
}

// ---- the table ----------------------------------------------------------------------------------

// What rules ask for: the instruction, its first two operands and whether the first is signed.
struct Halved {
  const VulkanRules& rules;
  const WideInst& w;
  const std::span<const Wide> args;
  const Wide x = args.empty() ? Wide{} : args[0], y = args.size() > 1 ? args[1] : Wide{};
  const bool is_signed = IsSigned(w.from.elem);
};

Wide DivideEither(const Halved& h) {
  const bool remainder = h.w.i.code == Code::kRem;
  if (!h.is_signed) {
    const Division d = Divide(h.x, h.y);
    return remainder ? d.remainder : d.quotient;
  }
  const Val x_negative = Signed(h.x.hi) < 0, y_negative = Signed(h.y.hi) < 0;
  const Division d = Divide(Select(x_negative, Neg(h.x), h.x), Select(y_negative, Neg(h.y), h.y));
  if (remainder) return Select(x_negative, Neg(d.remainder), d.remainder);
  return Select(x_negative ^ y_negative, Neg(d.quotient), d.quotient);
}

// The others are done to each half.
constexpr CodeTable<Wide (*)(const Halved& h)> kHalfRules = {
    {Code::kLiteral, [](const Halved& h) { return Literal(h.rules.b, h.w.type, h.w.i.literal); }},
    {Code::kAdd, [](const Halved& h) { return Add(h.x, h.y); }},
    {Code::kSub, [](const Halved& h) { return Sub(h.x, h.y); }},
    {Code::kMul, [](const Halved& h) { return Mul(h.x, h.y); }},
    {Code::kDiv, DivideEither},
    {Code::kRem, DivideEither},
    {Code::kMin, [](const Halved& h) { return Select(Lt(h.x, h.y, h.is_signed), h.x, h.y); }},
    {Code::kMax, [](const Halved& h) { return Select(Lt(h.x, h.y, h.is_signed), h.y, h.x); }},
    {Code::kShl, [](const Halved& h) { return Shl(h.x, h.y.lo); }},
    {Code::kShr, [](const Halved& h) { return Shr(h.x, h.y.lo, h.is_signed); }},
    {Code::kNeg, [](const Halved& h) { return Neg(h.x); }},
    {Code::kAbs, [](const Halved& h) { return Select(Signed(h.x.hi) < 0, Neg(h.x), h.x); }},
    {Code::kEq, [](const Halved& h) { return Wide{Eq(h.x, h.y), {}}; }},
    {Code::kLt, [](const Halved& h) { return Wide{Lt(h.x, h.y, h.is_signed), {}}; }},
    {Code::kLe, [](const Halved& h) { return Wide{~Lt(h.y, h.x, h.is_signed), {}}; }},
    {Code::kConvert, [](const Halved& h) { return Convert(h.rules.caps, h.w, h.x); }},
    {Code::kBitcast, [](const Halved& h) { return Bitcast(h.w.type, h.x); }},
    {Code::kLoad,
     [](const Halved& h) { return Load(h.rules, h.w.i.view, h.x.lo, h.w.type.lanes); }},
    {Code::kStore, [](const Halved& h) { return Store(h.rules, h.w.i.view, h.x.lo, h.y); }},
};

}  // namespace

View HalvesView(View v) {
  if (!IsWide(v.elem)) return v;
  v.extent *= v.elem.lanes == 4 ? 2 : 1;
  v.elem = kU32.Lanes(v.elem.lanes == 1 ? 2 : 4);
  return v;
}

Wide WideRule(const VulkanRules& memory, const WideInst& w, std::span<const Wide> x) {
  const auto rule = kHalfRules[w.i.code];
  return rule != nullptr ? rule({memory, w, x}) : EachHalf(w.i, w.type, x);
}

}  // namespace forge::codegen
