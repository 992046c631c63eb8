// SPDX-License-Identifier: Apache-2.0
#include "codegen/lower_rules.h"

#include <cmath>

#include "codegen/literal.h"
#include "codegen/scalar.h"

namespace forge::codegen {

// Vulkan lets a device assume that there are no NaNs, unless it is told to keep them.
Val LowerRules::IsNan(Val x) const {
  if (caps.signed_zero_inf_nan || x.type().elem != DType::kF32) return isnan(x);
  const Val bits = bitcast(x, DType::kU32);
  return (bits & Like(0x7fffffff, bits)) > Like(0x7f800000, bits);
}

Val LowerRules::Extreme(Code code, Val a, Val c) const {
  const auto literal = b.LiteralOf(c);
  const bool no_nan = literal && !std::isnan(FloatOf(c.type().elem, *literal));
  if (!caps.signed_zero_inf_nan && a.type().elem == DType::kF32) {
    const Val plain = b.Emit(code, a.type(), {a, c});
    const Val right = no_nan ? plain : select(IsNan(c), c, plain);
    return select(IsNan(a), a, right);
  }
  const Val second = code == Code::kMax ? a <= c : c <= a;  // false for NaN, which gives `a`
  return select(no_nan ? second : second | IsNan(c), c, a);
}

// Converts what is in range; the rest is picked by comparisons, which NaN fails.
Val LowerRules::FloatToInt(Val x, const Type& to) const {
  const bool is_signed = IsSigned(to.elem);
  const int bits = BitWidth(to.elem) - (is_signed ? 1 : 0);
  const double high = std::ldexp(1.0, bits);  // the first beyond
  const Val above = x >= high;
  const Val inside = (is_signed ? x >= -high : x > 0.0) & ~above;
  const Val number = caps.signed_zero_inf_nan ? inside : inside & ~IsNan(x);
  const Val converted = b.Emit(Code::kConvert, to, {select(number, x, 0.0)});
  const Val out = select(above, b.Bits(to, ~uint64_t{0} >> (64 - bits)), converted);
  return is_signed ? select(x < -high, b.Bits(to, ~uint64_t{0} << bits), out) : out;
}

// Without 8- and 16-bit arithmetic only the width may change; the kind changes at 32 bits.
Val LowerRules::Convert(Val x, const Type& to) const {
  const Type& from = x.type();
  const auto kind = [](DType t) { return t == DType::kBool ? 0 : IsFloat(t) ? 1 : 2; };
  if (kind(from.elem) == kind(to.elem)) return {};
  const auto wide = [](DType t) {
    if (t == DType::kBool || BitWidth(t) >= 32) return t;
    return IsFloat(t) ? DType::kF32 : IsSigned(t) ? DType::kI32 : DType::kU32;
  };
  if (wide(from.elem) != from.elem) return Converted(b.Convert(x, wide(from.elem)), to);
  if (wide(to.elem) != to.elem) {
    Val v = Converted(x, to.With(wide(to.elem)));
    if (IsFloat(from.elem)) {  // saturates twice
      const int bits = BitWidth(to.elem) - (IsSigned(to.elem) ? 1 : 0);
      v = min(max(v, IsSigned(to.elem) ? -std::ldexp(1.0, bits) : 0.0), std::ldexp(1.0, bits) - 1);
    }
    return b.Convert(v, to.elem);
  }
  return IsFloat(from.elem) && IsInt(to.elem) ? FloatToInt(x, to) : Val{};
}

Val LowerRules::Converted(Val x, const Type& to) const {
  const Val v = Convert(x, to);
  return v ? v : b.Convert(x, to.elem);
}

// As integers in the order of the floats, NaN beyond all of them.
Val LowerRules::SubgroupExtreme(const Inst& i, Val x) const {
  const auto in_order = [](Val bits) { return bits ^ ((bits >> 31.0) & Like(0x7fffffff, bits)); };
  const bool max = static_cast<ReduceKind>(i.aux) == ReduceKind::kMax;
  const Val bits = bitcast(x, DType::kI32);
  const Val key = select(IsNan(x), max ? 0x1p31 : -0x1p31, in_order(bits));
  const Val extreme = i.code == Code::kSubgroupScan
                          ? b.SubgroupScan(static_cast<ReduceKind>(i.aux), key)
                          : b.SubgroupReduce(static_cast<ReduceKind>(i.aux), key);
  return bitcast(in_order(extreme), DType::kF32);
}

Val LowerRules::Dot4(DotKind kind, std::span<const Val> x) const {
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

Val LowerRules::Apply(const Inst& i, const Type& type, std::span<const Val> x) const {
  const bool floats = !x.empty() && IsFloat(x[0].type().elem);
  switch (i.code) {
    case Code::kMin:
    case Code::kMax:
      return floats && (i.aux & kPrecise) ? Extreme(i.code, x[0], x[1]) : Val{};
    case Code::kEq:
      return floats && x[0].id == x[1].id ? ~IsNan(x[0]) : Val{};
    case Code::kConvert:
      return Convert(x[0], type);
    case Code::kRem:
      if (!IsSigned(type.elem) || (i.aux & kNonNegative)) return {};
      return x[0] - b.Emit(Code::kDiv, type, {x[0], x[1]}) * x[1];
    case Code::kSubgroupReduce:
    case Code::kSubgroupScan: {
      const auto kind = static_cast<ReduceKind>(i.aux);
      const bool extreme = kind == ReduceKind::kMin || kind == ReduceKind::kMax;
      return extreme && type.elem == DType::kF32 ? SubgroupExtreme(i, x[0]) : Val{};
    }
    case Code::kDot4:
      return caps.int_dot ? Val{} : Dot4(static_cast<DotKind>(i.aux), x);
    default:
      return {};
  }
}

}  // namespace forge::codegen
