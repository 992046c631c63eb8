// SPDX-License-Identifier: Apache-2.0
// A vector of f32 as the scalar of ir/ops/elementwise/rows.inc. Included once for each
// instruction set, after hwy/highway.h, inside no namespace.
#if defined(FORGE_CPU_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FORGE_CPU_LANES_INL_H_
#undef FORGE_CPU_LANES_INL_H_
#else
#define FORGE_CPU_LANES_INL_H_  // NOLINT(readability-identifier-naming): as Highway names them
#endif

#include <type_traits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace forge::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A vector of truth values.
template <class D>
struct TruthLanes {
  hn::Mask<D> m;

  friend HWY_INLINE TruthLanes operator&(TruthLanes a, TruthLanes b) { return {hn::And(a.m, b.m)}; }
  friend HWY_INLINE TruthLanes operator^(TruthLanes a, TruthLanes b) { return {hn::Xor(a.m, b.m)}; }
  friend HWY_INLINE TruthLanes operator~(TruthLanes a) { return {hn::Not(a.m)}; }
};

// Words of 32 bits beside lanes, see ir/ops/elementwise/rows.inc.
template <class D>
struct WordLanes {
  using Bits = hn::RebindToUnsigned<D>;
  hn::Vec<Bits> v;
  WordLanes() = default;
  HWY_INLINE explicit WordLanes(hn::Vec<Bits> x) : v(x) {}
  static constexpr bool kSingle = std::is_same_v<D, hn::CappedTag<float, 1>>;
  static HWY_INLINE hn::Vec<Bits> Set(uint32_t bits) { return hn::Set(Bits(), bits); }

  friend HWY_INLINE WordLanes operator+(WordLanes a, WordLanes b) {
    return WordLanes(hn::Add(a.v, b.v));
  }
  friend HWY_INLINE WordLanes operator-(WordLanes a, WordLanes b) {
    return WordLanes(hn::Sub(a.v, b.v));
  }
  friend HWY_INLINE WordLanes operator*(WordLanes a, WordLanes b) {
    return WordLanes(hn::Mul(a.v, b.v));
  }
  friend HWY_INLINE WordLanes operator&(WordLanes a, WordLanes b) {
    return WordLanes(hn::And(a.v, b.v));
  }
  friend HWY_INLINE WordLanes operator|(WordLanes a, WordLanes b) {
    return WordLanes(hn::Or(a.v, b.v));
  }
  friend HWY_INLINE WordLanes operator^(WordLanes a, WordLanes b) {
    return WordLanes(hn::Xor(a.v, b.v));
  }
  // A single word is shifted as an integer: on x86, Highway 1.0 takes the amount of such a vector
  // from two of its lanes.
  friend HWY_INLINE WordLanes operator<<(WordLanes a, WordLanes n) {
    if constexpr (kSingle) return WordLanes(Set(hn::GetLane(a.v) << hn::GetLane(n.v)));
    return WordLanes(hn::Shl(a.v, n.v));
  }
  friend HWY_INLINE WordLanes operator>>(WordLanes a, WordLanes n) {
    if constexpr (kSingle) return WordLanes(Set(hn::GetLane(a.v) >> hn::GetLane(n.v)));
    return WordLanes(hn::Shr(a.v, n.v));
  }
  friend HWY_INLINE TruthLanes<D> operator<(WordLanes a, WordLanes b) {
    return {hn::RebindMask(D(), hn::Lt(a.v, b.v))};
  }
  friend HWY_INLINE TruthLanes<D> operator==(WordLanes a, WordLanes b) {
    return {hn::RebindMask(D(), hn::Eq(a.v, b.v))};
  }
  friend HWY_INLINE WordLanes select(TruthLanes<D> c, WordLanes a, WordLanes b) {
    return WordLanes(hn::IfThenElse(hn::RebindMask(Bits(), c.m), a.v, b.v));
  }
  // From products of halves.
  friend HWY_INLINE WordLanes mul_high(WordLanes a, WordLanes b) {
    const WordLanes low(Set(0xffff));
    const WordLanes ah(hn::ShiftRight<16>(a.v)), al = a & low;
    const WordLanes bh(hn::ShiftRight<16>(b.v)), bl = b & low;
    const WordLanes middle = ah * bl + WordLanes(hn::ShiftRight<16>((al * bl).v));
    const WordLanes carry = al * bh + (middle & low);
    return ah * bh + WordLanes(hn::ShiftRight<16>(middle.v)) +
           WordLanes(hn::ShiftRight<16>(carry.v));
  }
};

// D is a Highway tag: whole vectors, or one element for what is left of a loop.
template <class D>
struct Lanes {
  hn::Vec<D> v;
  HWY_INLINE explicit Lanes(hn::Vec<D> x) : v(x) {}
  HWY_INLINE Lanes(double x) : v(hn::Set(D(), static_cast<float>(x))) {}  // NOLINT: numbers mix

  friend HWY_INLINE Lanes operator+(Lanes a, Lanes b) { return Lanes(hn::Add(a.v, b.v)); }
  friend HWY_INLINE Lanes operator-(Lanes a, Lanes b) { return Lanes(hn::Sub(a.v, b.v)); }
  friend HWY_INLINE Lanes operator*(Lanes a, Lanes b) { return Lanes(hn::Mul(a.v, b.v)); }
  friend HWY_INLINE Lanes operator/(Lanes a, Lanes b) { return Lanes(hn::Div(a.v, b.v)); }
  friend HWY_INLINE TruthLanes<D> operator>(Lanes a, Lanes b) { return {hn::Gt(a.v, b.v)}; }
  friend HWY_INLINE TruthLanes<D> operator<(Lanes a, Lanes b) { return {hn::Lt(a.v, b.v)}; }
  friend HWY_INLINE TruthLanes<D> operator>=(Lanes a, Lanes b) { return {hn::Ge(a.v, b.v)}; }
  friend HWY_INLINE TruthLanes<D> operator<=(Lanes a, Lanes b) { return {hn::Le(a.v, b.v)}; }
  friend HWY_INLINE TruthLanes<D> operator==(Lanes a, Lanes b) { return {hn::Eq(a.v, b.v)}; }
  friend HWY_INLINE Lanes operator-(Lanes a) { return Lanes(hn::Neg(a.v)); }
  friend HWY_INLINE Lanes abs(Lanes a) { return Lanes(hn::Abs(a.v)); }
  friend HWY_INLINE Lanes copysign(Lanes a, Lanes sign) { return Lanes(hn::CopySign(a.v, sign.v)); }
  // On x86 the instruction returns the second operand when either is NaN, so a NaN in the first
  // must be selected explicitly.
  friend HWY_INLINE Lanes max(Lanes a, Lanes b) {
    return Lanes(hn::IfThenElse(hn::Not(hn::Eq(a.v, a.v)), a.v, hn::Max(a.v, b.v)));
  }
  friend HWY_INLINE Lanes min(Lanes a, Lanes b) {
    return Lanes(hn::IfThenElse(hn::Not(hn::Eq(a.v, a.v)), a.v, hn::Min(a.v, b.v)));
  }
  friend HWY_INLINE Lanes select(TruthLanes<D> c, Lanes a, Lanes b) {
    return Lanes(hn::IfThenElse(c.m, a.v, b.v));
  }
  friend HWY_INLINE Lanes sqrt(Lanes a) { return Lanes(hn::Sqrt(a.v)); }
  friend HWY_INLINE Lanes floor(Lanes a) { return Lanes(hn::Floor(a.v)); }
  friend HWY_INLINE Lanes round_even(Lanes a) { return Lanes(hn::Round(a.v)); }
  friend HWY_INLINE Lanes fma(Lanes a, Lanes b, Lanes c) {
    return Lanes(hn::MulAdd(a.v, b.v, c.v));
  }
  friend HWY_INLINE Lanes exp2_int(Lanes i) {
    const hn::RebindToSigned<D> di;
    const auto biased = hn::Add(hn::ConvertTo(di, i.v), hn::Set(di, 127));
    return Lanes(hn::BitCast(D(), hn::ShiftLeft<23>(biased)));
  }
  friend HWY_INLINE Lanes nearest_exponent(Lanes x) {
    const hn::RebindToSigned<D> di;
    const auto above = hn::Sub(hn::BitCast(di, x.v), hn::Set(di, 0x3f3504f3));
    return Lanes(hn::ConvertTo(D(), hn::ShiftRight<23>(above)));
  }
  friend HWY_INLINE Lanes high_half(Lanes x) {
    const hn::RebindToUnsigned<D> du;
    return Lanes(hn::BitCast(D(), hn::And(hn::BitCast(du, x.v), hn::Set(du, 0xfffff000u))));
  }
};

template <class D>
HWY_INLINE WordLanes<D> word_like(Lanes<D>, uint32_t bits) {
  return WordLanes<D>(WordLanes<D>::Set(bits));
}
// Below 2^31, which vectors convert.
template <class D>
HWY_INLINE WordLanes<D> to_word(Lanes<D> x) {
  const hn::RebindToSigned<D> di;
  return WordLanes<D>(hn::BitCast(hn::RebindToUnsigned<D>(), hn::ConvertTo(di, x.v)));
}
template <class D>
HWY_INLINE Lanes<D> from_word(Lanes<D>, WordLanes<D> word) {
  const hn::RebindToSigned<D> di;
  return Lanes<D>(hn::ConvertTo(D(), hn::BitCast(di, word.v)));
}
template <class Row, class D, class... More>
HWY_INLINE Lanes<D> FormOf(const Row& row, Lanes<D> x, More... more) {
  return row.f32(x, more...);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace forge::cpu
HWY_AFTER_NAMESPACE();

#endif  // FORGE_CPU_LANES_INL_H_
