// SPDX-License-Identifier: Apache-2.0
#include "codegen/lower_rules.h"

#include <algorithm>
#include <cmath>

#include "codegen/literal.h"
#include "codegen/scalar.h"
#include "codegen/schedule.h"

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

// The view of a part, which Lower() has added.
uint16_t ViewOfPart(const std::vector<View>& views, uint16_t view, int part) {
  if (part == 0) return view;
  const View& whole = views[view];
  const auto at = std::find_if(views.begin(), views.end(), [&](const View& v) {
    return v.space == Space::kGlobal && v.operand == whole.operand + part && v.elem == whole.elem;
  });
  return static_cast<uint16_t>(at - views.begin());
}

// Loads, stores and atomics of f32 in a view of u32. What is there is first taken for 0: right at
// the first touch of a sum, and otherwise told by the exchange that fails.
Val Exchangeable(const LowerRules& rules, const Inst& i, std::span<const Val> x) {
  Builder& b = rules.b;
  const auto add = [&](Code code, const Vals& args) {
    return rules.Add({.code = code, .aux = i.aux, .view = i.view}, kU32, args);
  };
  if (i.code == Code::kLoad) return bitcast(add(i.code, {x[0]}), DType::kF32);
  if (i.code == Code::kStore) {
    add(i.code, {x[0], bitcast(x[1], DType::kU32)});
    return x[0];
  }
  const auto kind = static_cast<AtomicKind>(i.aux);
  const auto combined = [&](Val old) {
    if (kind == AtomicKind::kAdd) return b.Emit(Code::kAdd, kF32, {old, x[1]}, kPrecise);
    return Extreme(rules.caps, kind == AtomicKind::kMin ? Code::kMin : Code::kMax, old, x[1]);
  };
  if (kind == AtomicKind::kExchange)
    return bitcast(add(i.code, {x[0], bitcast(x[1], DType::kU32)}), DType::kF32);
  const Vals done = b.While(
      {b.Bits(kU32, 0), b.Bits(kBool, 0)}, [](const Vals& v) { return ~v[1]; },
      [&](const Vals& v) {
        const Val next = bitcast(combined(bitcast(v[0], DType::kF32)), DType::kU32);
        const Val old = add(Code::kCompareExchange, {x[0], v[0], next});
        return Vals{old, old == v[0]};
      });
  return bitcast(done[0], DType::kF32);
}

}  // namespace

Val LowerRules::Add(const Inst& i, const Type& type, std::span<const Val> x) const {
  const bool at_element =
      IsOneOf(i.code, {Code::kLoad, Code::kStore, Code::kAtomic, Code::kCompareExchange});
  const int parts = at_element ? b.kernel().views[i.view].parts : 1;
  return parts == 1 ? b.Add(i, type, x) : AddAmong({0, parts}, i, type, x);
}

// Halves what is left, so that a load takes few tests.
Val LowerRules::AddAmong(PartRange parts, const Inst& i, const Type& type,
                         std::span<const Val> x) const {
  const int64_t each = b.kernel().views[i.view].extent;
  if (parts.end - parts.begin == 1) {
    Inst one = i;
    one.view = ViewOfPart(b.kernel().views, i.view, parts.begin);
    Vals args(x.begin(), x.end());
    args[0] = args[0] - b.Int(parts.begin * each);
    return b.Add(one, type, args);
  }
  const int middle = (parts.begin + parts.end) / 2;
  const auto among = [&](PartRange some) {
    const Val v = AddAmong(some, i, type, x);
    return v ? Vals{v} : Vals{};
  };
  const Vals out = b.If(
      x[0] < b.Int(middle * each), [&] { return among({parts.begin, middle}); },
      [&] { return among({middle, parts.end}); });
  return out.empty() ? Val{} : out[0];
}

void MakeExchangeable(const Kernel& k, const Caps& caps, std::vector<View>& views) {
  for (const Block& block : k.blocks)
    for (const Inst& i : block.insts) {
      const bool native = i.aux == static_cast<uint8_t>(AtomicKind::kAdd) && caps.f32_atomic_add;
      if (i.code == Code::kAtomic && k.TypeOf(i.result) == kF32 && !native)
        views[i.view].elem = kU32;
    }
}

Val LowerRules::Apply(const Inst& i, const Type& type, std::span<const Val> x) const {
  const bool floats = !x.empty() && IsFloat(x[0].type().elem);
  switch (i.code) {
    case Code::kMin:
    case Code::kMax:
      return floats && (i.aux & kPrecise) ? Extreme(caps, i.code, x[0], x[1]) : Val{};
    case Code::kEq:
      return floats && x[0].id == x[1].id ? ~IsNan(caps, x[0]) : Val{};
    case Code::kConvert:
      return Convert(caps, x[0], type);
    case Code::kRem:
      if (!IsSigned(type.elem) || (i.aux & kNonNegative)) return {};
      return x[0] - b.Emit(Code::kDiv, type, {x[0], x[1]}) * x[1];
    case Code::kSubgroupReduce:
    case Code::kSubgroupScan: {
      const auto kind = static_cast<ReduceKind>(i.aux);
      const bool extreme = kind == ReduceKind::kMin || kind == ReduceKind::kMax;
      return extreme && type.elem == DType::kF32 ? SubgroupExtreme(caps, i, x[0]) : Val{};
    }
    case Code::kLoad:
    case Code::kStore:
    case Code::kAtomic: {
      const Type& there = b.kernel().views[i.view].elem;
      return there == kU32 && (i.code == Code::kStore ? x[1].type() : type) == kF32
                 ? Exchangeable(*this, i, x)
                 : Val{};
    }
    case Code::kDot4:
      return caps.int_dot ? Val{} : SpelledDot4(static_cast<DotKind>(i.aux), x);
    default:
      return {};
  }
}

}  // namespace forge::codegen
