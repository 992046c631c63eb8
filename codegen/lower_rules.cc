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
  const bool narrow = BitWidth(to.elem) < 32;
  const DType wide = !narrow ? to.elem : IsSigned(to.elem) ? DType::kI32 : DType::kU32;
  const int bits = BitWidth(to.elem) - (IsSigned(to.elem) ? 1 : 0);
  const double high = std::ldexp(1.0, bits);  // the first beyond
  const Val above = x >= high;
  const Val inside = !IsSigned(to.elem) ? (x > 0.0) & !above : (x >= -high) & !above;
  const Val number = caps.signed_zero_inf_nan ? inside : inside & !IsNan(x);
  const Type t = x.type().With(wide);
  const Val converted = b.Emit(Code::kConvert, t, {select(number, x, 0.0)});
  const Val most = b.Bits(t, ~uint64_t{0} >> (64 - bits));
  Val out = select(above, most, converted);
  if (IsSigned(to.elem)) out = select(x < -high, b.Bits(t, ~uint64_t{0} << bits), out);
  return narrow ? b.Convert(out, to.elem) : out;
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
      return floats && x[0].id == x[1].id ? !IsNan(x[0]) : Val{};
    case Code::kConvert:
      return floats && IsInt(type.elem) ? FloatToInt(x[0], type) : Val{};
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
