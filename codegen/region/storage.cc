// SPDX-License-Identifier: Apache-2.0
#include "codegen/region/storage.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/narrow_float.h"
#include "base/status.h"
#include "codegen/kernel/literal.h"
#include "codegen/kernel/scalar.h"
#include "codegen/region/index.h"
#include "ir/analysis/in_place.h"

namespace forge::codegen {
namespace {

constexpr DTypes kNarrowFloats = kAllFloatTypes & ~(Bit(DType::kF32) | Bit(DType::kF64));
constexpr DTypes kAllIntTypes = kIntTypes | kTinyIntTypes;
bool IsNarrowInt(DType t) { return Has(kAllIntTypes, t) && BitWidth(t) < 32; }
int StoredBits(DType t) { return t == DType::kBool ? 8 : BitWidth(t); }
// Are `lanes` elements reached through words? Those narrower than what the device loads are; and
// vectors of narrow ones on CPUs, whose drivers load each element of each invocation by itself.
bool InWords(DType t, int lanes, const Caps& caps) {
  const int bits = StoredBits(t);
  if (caps.runs_on_cpu && bits < 32 && lanes * bits >= 32) return true;
  return bits < 8 || (bits == 8 && !caps.storage8) || (bits == 16 && !caps.storage16);
}

Val U32(Val like, uint32_t bits) { return like.b->Bits(kU32.Lanes(like.type().lanes), bits); }

constexpr uint32_t kMagnitude = 0x7fffffffu, kInfinity = 0x7f800000u;

// A float with exponents of its own; bf16 has those of f32.
struct NarrowFloat {
  int bits = 8, fraction = 0, bias = 0;
  uint32_t special = 0, nan = 0;  // codes: the first that is no number, and a quiet NaN
  double beyond = 0, large = 0;   // what rounds to `beyond` or more is `large`
  bool has_nan = true, has_minus_zero = true;  // without minus zero its code is NaN

  int drop() const { return 23 - fraction; }  // of f32's fraction
  uint32_t sign() const { return 1u << (bits - 1); }
  // f32's bits of the smallest normal number; numbers below it are multiples of a step.
  uint32_t normal() const { return static_cast<uint32_t>(128 - bias) << 23; }
  double steps() const { return std::ldexp(1.0, bias - 1 + fraction); }  // in 1
};
NarrowFloat FormatOf(DType t) {
  if (t == DType::kF8E4M3) return {8, 3, 7, 0x7f, 0x7f, 480, 448};
  if (t == DType::kF8E5M2) return {8, 2, 15, 0x7c, 0x7e, 0x1p16, INFINITY};
  if (t == DType::kF8E4M3Fnuz) return {8, 3, 8, 0x80, 0x80, 256, 240, true, false};
  if (t == DType::kF8E5M2Fnuz) return {8, 2, 16, 0x80, 0x80, 0x1p16, 57344, true, false};
  if (t == DType::kF4E2M1) return {4, 1, 1, 8, 0, 8, 6, false};
  FORGE_CHECK(t == DType::kF16);
  return {16, 10, 15, 0x7c00, 0x7e00, 0x1p16, INFINITY};
}

// |v| as bits, rounded half to even at bit `drop`; NaN stays NaN.
Val RoundBits(Val magnitude, int drop) {
  const uint32_t below_half = (1u << (drop - 1)) - 1;
  Val odd = (magnitude >> drop) & U32(magnitude, 1);
  Val rounded = (magnitude + U32(magnitude, below_half) + odd) & U32(magnitude, ~0u << drop);
  return select(U32(magnitude, kInfinity) < magnitude, U32(magnitude, 0x7fc00000u), rounded);
}

// The code of an f32 that the format represents.
Val CodeOf(const NarrowFloat& f, Val v) {
  Val bits = bitcast(v, DType::kU32);
  Val magnitude = bits & U32(bits, kMagnitude);
  Val tiny = magnitude < U32(bits, f.normal());
  Val normal = (magnitude - U32(bits, f.normal() - (1u << 23))) >> f.drop();
  Val steps = select(tiny, bitcast(magnitude, DType::kF32), 0) * f.steps();
  Val finite = select(tiny, convert(steps, DType::kU32), normal);
  Val special = select(U32(bits, kInfinity) < magnitude, U32(bits, f.nan), U32(bits, f.special));
  Val sign = (bits >> (32 - f.bits)) & U32(bits, f.sign());
  return select(magnitude < U32(bits, kInfinity), finite, special) | sign;
}

Val FromCode(const NarrowFloat& f, Val bits) {
  Val magnitude = bits & U32(bits, f.sign() - 1);
  Val shifted = magnitude << f.drop();
  Val denormal = bitcast(convert(magnitude, DType::kF32) * (1 / f.steps()), DType::kU32);
  Val finite = select(magnitude < U32(bits, 1u << f.fraction), denormal,
                      shifted + U32(bits, f.normal() - (1u << 23)));
  Val any = select(magnitude < U32(bits, f.special), finite, shifted | U32(bits, kInfinity));
  Val all = any | ((bits & U32(bits, f.sign())) << (32 - f.bits));
  if (!f.has_minus_zero) all = select(bits == U32(bits, f.sign()), U32(bits, 0x7fc00000u), all);
  return bitcast(all, DType::kF32);
}

// Float to an integer of `to` held in its compute type.
Val FloatToInt(Val v, DType to) {
  if (!IsNarrowInt(to)) return convert(v, to);
  const int bits = BitWidth(to);
  const double low = IsSigned(to) ? -std::ldexp(1.0, bits - 1) : 0;
  const double high = std::ldexp(1.0, IsSigned(to) ? bits - 1 : bits) - 1;
  return bitcast(min(max(convert(v, DType::kI32), low), high), ComputeType(to));
}

// From its bits in a u32.
Val Decode(DType t, Val bits) {
  if (t == DType::kBool) return bits != 0;
  if (t == DType::kBF16) return bitcast(bits << 16, DType::kF32);
  if (Has(kNarrowFloats, t)) return FromCode(FormatOf(t), bits);
  return IsSigned(t) ? Wrap(t, bitcast(bits, DType::kI32)) : bits;
}

// To its bits in a u32.
Val Encode(DType t, Val value) {
  if (t == DType::kBool) return select(value, U32(value, 1), U32(value, 0));
  if (t == DType::kBF16) return bitcast(RoundTo(t, value), DType::kU32) >> 16;
  if (Has(kNarrowFloats, t)) return CodeOf(FormatOf(t), RoundTo(t, value));
  Val whole = bitcast(value, DType::kU32);
  return whole & U32(whole, (1u << BitWidth(t)) - 1);
}

}  // namespace

Verdict CanCompute(DType t, const Caps& caps) {
  constexpr DTypes kKnown = kAllFloatTypes | kAllIntTypes | Bit(DType::kBool);
  if (!Has(kKnown, t)) return Verdict::No(fmt::format("no kernels for {}", Name(t)));
  if (t == DType::kF64 && !caps.f64) return Verdict::No("the device has no f64");
  return Verdict::Yes();
}

Verdict CanNumber(const ir::Type& t) {
  const int64_t elements = t.elements().max();
  if (elements <= kMostElements) return Verdict::Yes();
  return Verdict::No(fmt::format("{} has {}{} elements, kernels number at most {}", t.ToText(),
                                 t.is_constant() ? "" : "up to ", elements, kMostElements));
}

std::optional<ir::Dim> VectorAt(DType t, const ir::Dim& flat, const ir::SymbolRef& lane, int lanes,
                                const Caps& caps) {
  // What is less than a word shares it with elements of other invocations.
  if (InWords(t, 1, caps) && lanes * StoredBits(t) < 32) return std::nullopt;
  const std::optional<ir::Dim> base = AlignedBase(flat, lane, lanes);
  if (!base) return std::nullopt;
  return FloorDiv(*base, lanes);
}

Val Wrap(DType t, Val v) {
  if (!IsNarrowInt(t)) return v;
  const int spare = 32 - BitWidth(t);
  return (v << spare) >> spare;
}

Val RoundTo(DType t, Val v) {
  Val bits = bitcast(v, DType::kU32);
  Val magnitude = bits & U32(bits, kMagnitude);
  const auto with_sign = [&](Val v) {
    return bitcast(v | (bits & U32(bits, ~kMagnitude)), DType::kF32);
  };
  if (t == DType::kBF16) return with_sign(RoundBits(magnitude, 16));
  const NarrowFloat f = FormatOf(t);
  const auto f32 = [&](double x) {
    return U32(bits, std::bit_cast<uint32_t>(static_cast<float>(x)));
  };
  Val rounded = RoundBits(magnitude, f.drop());
  Val infinite = f32(f.beyond) <= rounded;
  Val nan = U32(bits, kInfinity) < rounded;
  Val large = select(nan, f.has_nan ? rounded : U32(bits, 0), f32(f.large));
  Val denormal = round_even(bitcast(magnitude, DType::kF32) * f.steps()) * (1 / f.steps());
  Val tiny = magnitude < U32(bits, f.normal());
  Val number = select(infinite, large, select(tiny, bitcast(denormal, DType::kU32), rounded));
  if (f.has_nan && f.has_minus_zero) return with_sign(number);
  // Neither a zero without sign nor what stands for NaN takes the sign.
  Val unsigned_zero = f.has_minus_zero ? nan : number == U32(bits, 0);
  return select(unsigned_zero, 0, with_sign(number));
}

Val ConvertElement(Val v, DType from, DType to) {
  if (from == to) return v;
  if (to == DType::kBool) return v != 0;
  const Type wide = v.type().With(ComputeType(to));
  if (from == DType::kBool) return select(v, v.b->Literal(wide, 1), v.b->Literal(wide, 0));
  if (IsFloat(ComputeType(from)) && Has(kAllIntTypes, to)) return FloatToInt(v, to);
  if (v.type().elem != wide.elem) v = convert(v, wide.elem);
  return Has(kNarrowFloats, to) ? RoundTo(to, v) : Wrap(to, v);
}

Storage::Storage(Builder& b, Launch& launch, const Region& region)
    : b_(b),
      launch_(launch),
      region_(region),
      caps_(region.caps()),
      results_begin_(static_cast<int>(region.body().arguments().size())),
      aliased_(static_cast<size_t>(region.operand_count())) {
  for (const auto& [argument, result] : ir::OverwritableArguments(region.body()))
    aliased_[argument] = aliased_[static_cast<size_t>(results_begin_) + result] = true;
}

uint16_t Storage::ViewOf(int operand, Type elem) {
  std::vector<int>& bound = launch_.operands;
  const auto at = std::find(bound.begin(), bound.end(), operand);
  const auto place = static_cast<int>(at - bound.begin());
  const auto n = static_cast<size_t>(operand);  // beyond those of the region: scratch
  const int parts = n < aliased_.size() ? region_.PartsOf(operand) : 1;
  if (at == bound.end()) bound.insert(bound.end(), parts, operand);
  const std::vector<View>& views = b_.kernel().views;
  const auto known = std::find_if(views.begin(), views.end(), [&](const View& v) {
    return v.space == Space::kGlobal && v.operand == place && v.elem == elem;
  });
  if (known != views.end()) return static_cast<uint16_t>(known - views.begin());
  const int64_t part = parts == 1 ? 0 : PartBytes(caps_) / ElementBytes(elem);
  return b_.AddView({.name = fmt::format("x{}_{}x{}", operand, Name(elem.elem), elem.lanes),
                     .elem = elem,
                     .operand = place,
                     .parts = parts,
                     .extent = static_cast<uint32_t>(part),
                     .writes = operand >= results_begin_,
                     .aliased = n < aliased_.size() && aliased_[n]});
}

DType Storage::StoredType(DType t) const {
  const int bits = StoredBits(t);
  if (bits >= 32 || (t == DType::kF16 && caps_.f16)) return t;
  return bits == 8 ? DType::kU8 : DType::kU16;
}

Val Storage::Load(int operand, DType t, Val index, int lanes) {
  const int bits = StoredBits(t);
  if (!InWords(t, lanes, caps_)) {
    const DType stored = StoredType(t);
    Val v = b_.Load(ViewOf(operand, Type{stored}.Lanes(lanes)), index);
    if (bits >= 32) return v;
    return stored == DType::kF16 ? convert(v, DType::kF32) : Decode(t, convert(v, DType::kU32));
  }
  const int per_word = 32 / bits, words = lanes / per_word;
  if (lanes == 1) {
    Val word = b_.Load(ViewOf(operand, kU32), index >> Log2(per_word));
    Val by = convert(index & b_.Int(per_word - 1), DType::kU32) * bits;
    return Decode(t, (word >> by) & U32(word, (1u << bits) - 1));
  }
  FORGE_CHECK(words >= 1);
  Val loaded = b_.Load(ViewOf(operand, kU32.Lanes(words)), index);
  Vals parts;
  for (int i = 0; i < lanes; ++i) {
    Val word = words == 1 ? loaded : b_.Extract(loaded, i / per_word);
    parts.push_back((word >> (bits * (i % per_word))) & U32(word, (1u << bits) - 1));
  }
  return Decode(t, b_.Pack(kU32.Lanes(lanes), parts));
}

Val Storage::Atomic(int operand, AtomicKind kind, Val index, Val value) {
  return b_.Atomic(kind, ViewOf(operand, value.type()), index, value);
}

void Storage::Store(int operand, DType t, Val index, Val value) {
  const int lanes = value.type().lanes, bits = StoredBits(t);
  if (!InWords(t, lanes, caps_)) {
    const DType stored = StoredType(t);
    if (bits < 32 && stored != DType::kF16) value = Encode(t, value);
    if (stored == DType::kF16 && !caps_.rounds_to_f16) value = RoundTo(t, value);
    if (bits < 32) value = convert(value, stored);
    b_.Store(ViewOf(operand, Type{stored}.Lanes(lanes)), index, value);
    return;
  }
  const int per_word = 32 / bits;
  if (lanes == 1) {
    const uint16_t view = ViewOf(operand, kU32);
    Val at = index >> Log2(per_word);
    Val by = convert(index & b_.Int(per_word - 1), DType::kU32) * bits;
    // Neighbours in the word belong to other invocations: neither step touches their bits.
    b_.Atomic(AtomicKind::kAnd, view, at, ~(U32(by, (1u << bits) - 1) << by));
    b_.Atomic(AtomicKind::kOr, view, at, Encode(t, value) << by);
    return;
  }
  Val encoded = Encode(t, value);
  Vals words;
  for (int w = 0; w < lanes / per_word; ++w) {
    Val word = b_.Extract(encoded, w * per_word);
    for (int i = 1; i < per_word; ++i)
      word = word | (b_.Extract(encoded, w * per_word + i) << (bits * i));
    words.push_back(word);
  }
  Val packed = b_.Pack(kU32.Lanes(static_cast<int>(words.size())), words);
  b_.Store(ViewOf(operand, packed.type()), index, packed);
}

}  // namespace forge::codegen
