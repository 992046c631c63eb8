// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "cpu_runtime/tape/conversions.h"
#include "cpu_runtime/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu_runtime/tape/conversions_vector.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, which decides what highway.h declares.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace forge::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Calls f(tag, i) for whole vectors, then for the remaining elements.
template <class F>
HWY_INLINE void ForEachFloat(size_t n, F f) {
  const hn::ScalableTag<float> whole;
  const hn::CappedTag<float, 1> single;
  const size_t lanes = hn::Lanes(whole);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) f(whole, i);
  for (; i < n; ++i) f(single, i);
}

// ---- integers

template <class T>
HWY_INLINE void NarrowFloats(const uint8_t* in, uint8_t* out, size_t n) {
  const auto* from = reinterpret_cast<const float*>(in);
  auto* to = reinterpret_cast<T*>(out);
  ForEachFloat(n, [&](auto d, size_t i) {
    using D = decltype(d);
    const auto v = hn::LoadU(d, from + i);
    const auto number = hn::IfThenElseZero(hn::Eq(v, v), v);
    const auto low = hn::Set(d, std::numeric_limits<T>::min());
    const auto high = hn::Set(d, std::numeric_limits<T>::max());
    const auto whole = hn::ConvertTo(hn::RebindToSigned<D>(), hn::Min(hn::Max(number, low), high));
    const hn::Rebind<T, D> bytes;
    hn::StoreU(hn::DemoteTo(bytes, whole), bytes, to + i);
  });
}

template <class T>
HWY_INLINE void WidenBytes(const uint8_t* in, uint8_t* out, size_t n) {
  const auto* from = reinterpret_cast<const T*>(in);
  auto* to = reinterpret_cast<float*>(out);
  ForEachFloat(n, [&](auto d, size_t i) {
    using D = decltype(d);
    const auto whole =
        hn::PromoteTo(hn::RebindToSigned<D>(), hn::LoadU(hn::Rebind<T, D>(), from + i));
    hn::StoreU(hn::ConvertTo(d, whole), d, to + i);
  });
}

// 2^31 is an f32, and the largest i32 is none.
void TruncateToI32(const uint8_t* in, uint8_t* out, size_t n) {
  const auto* from = reinterpret_cast<const float*>(in);
  auto* to = reinterpret_cast<int32_t*>(out);
  ForEachFloat(n, [&](auto d, size_t i) {
    const hn::RebindToSigned<decltype(d)> whole;
    const auto v = hn::LoadU(d, from + i);
    const auto number = hn::IfThenElseZero(hn::Eq(v, v), v);
    const auto past = hn::Ge(number, hn::Set(d, 0x1p31F));
    const auto low = hn::Max(number, hn::Set(d, -0x1p31F));
    const auto inside = hn::ConvertTo(whole, hn::IfThenZeroElse(past, low));
    hn::StoreU(hn::IfThenElse(hn::RebindMask(whole, past),
                              hn::Set(whole, std::numeric_limits<int32_t>::max()), inside),
               whole, to + i);
  });
}

void I32ToFloats(const uint8_t* in, uint8_t* out, size_t n) {
  const auto* from = reinterpret_cast<const int32_t*>(in);
  auto* to = reinterpret_cast<float*>(out);
  ForEachFloat(n, [&](auto d, size_t i) {
    const hn::RebindToSigned<decltype(d)> whole;
    hn::StoreU(hn::ConvertTo(d, hn::LoadU(whole, from + i)), d, to + i);
  });
}

void NarrowToU8(const uint8_t* in, uint8_t* out, size_t n) { NarrowFloats<uint8_t>(in, out, n); }
void NarrowToI8(const uint8_t* in, uint8_t* out, size_t n) { NarrowFloats<int8_t>(in, out, n); }
void WidenU8(const uint8_t* in, uint8_t* out, size_t n) { WidenBytes<uint8_t>(in, out, n); }
void WidenI8(const uint8_t* in, uint8_t* out, size_t n) { WidenBytes<int8_t>(in, out, n); }

// ---- f16 and bf16

template <class D>
using Words = hn::RebindToSigned<D>;
constexpr int32_t kInfinity = 0x7f800000;

template <class D>
HWY_INLINE hn::Vec<D> WidenBF16(D d, hn::Vec<Words<D>> bits) {
  return hn::BitCast(d, hn::ShiftLeft<16>(bits));
}

template <class D>
HWY_INLINE hn::Vec<D> WidenF16(D d, hn::Vec<Words<D>> bits) {
  const Words<D> w;
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(w, 0x8000)));
  const auto magnitude = hn::And(bits, hn::Set(w, 0x7fff));
  const auto shifted = hn::ShiftLeft<13>(magnitude);
  const auto normal = hn::Add(shifted, hn::Set(w, 112 << 23));
  const auto denormal = hn::BitCast(w, hn::Mul(hn::ConvertTo(d, magnitude), hn::Set(d, 0x1p-24f)));
  const auto finite = hn::IfThenElse(hn::Lt(magnitude, hn::Set(w, 0x400)), denormal, normal);
  const auto special = hn::Or(shifted, hn::Set(w, kInfinity));
  const auto is_special = hn::Gt(magnitude, hn::Set(w, 0x7bff));
  return hn::BitCast(d, hn::Or(sign, hn::IfThenElse(is_special, special, finite)));
}

// Drops the low bits of a magnitude, rounding half to even.
template <int kDrop, class V>
HWY_INLINE V RoundAway(V magnitude) {
  const hn::DFromV<V> w;
  const auto odd = hn::And(hn::ShiftRight<kDrop>(magnitude), hn::Set(w, 1));
  const auto half = hn::Set(w, (1 << (kDrop - 1)) - 1);
  return hn::ShiftRight<kDrop>(hn::Add(hn::Add(magnitude, half), odd));
}

template <class D>
HWY_INLINE hn::Vec<Words<D>> NarrowBF16(D, hn::Vec<Words<D>> magnitude) {
  const Words<D> w;
  const auto nan = hn::Or(hn::ShiftRight<16>(magnitude), hn::Set(w, 0x40));
  const auto is_nan = hn::Gt(magnitude, hn::Set(w, kInfinity));
  return hn::IfThenElse(is_nan, nan, RoundAway<16>(magnitude));
}

template <class D>
HWY_INLINE hn::Vec<Words<D>> NarrowF16(D d, hn::Vec<Words<D>> magnitude) {
  const Words<D> w;
  const auto normal = RoundAway<13>(hn::Sub(magnitude, hn::Set(w, 112 << 23)));
  // Units of 0.5 in the last place are those of denormals: the addition rounds.
  const auto half = hn::Set(d, 0.5f);
  const auto denormal =
      hn::Sub(hn::BitCast(w, hn::Add(hn::BitCast(d, magnitude), half)), hn::BitCast(w, half));
  const auto finite = hn::IfThenElse(hn::Lt(magnitude, hn::Set(w, 0x38800000)), denormal, normal);
  // 65520 and beyond round to infinity.
  const auto numbers =
      hn::IfThenElse(hn::Lt(magnitude, hn::Set(w, 0x477ff000)), finite, hn::Set(w, 0x7c00));
  const auto payload = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(w, 0x3ff));
  const auto is_nan = hn::Gt(magnitude, hn::Set(w, kInfinity));
  return hn::IfThenElse(is_nan, hn::Or(payload, hn::Set(w, 0x7e00)), numbers);
}

template <DType kT, class D>
HWY_INLINE void WidenAt(D d, const uint16_t* in, float* out) {
  const hn::Rebind<uint16_t, D> halves;
  const auto bits = hn::PromoteTo(Words<D>(), hn::LoadU(halves, in));
  hn::StoreU(kT == DType::kF16 ? WidenF16(d, bits) : WidenBF16(d, bits), d, out);
}

template <DType kT, class D>
HWY_INLINE void NarrowAt(D d, const float* in, uint16_t* out) {
  const Words<D> w;
  const auto bits = hn::BitCast(w, hn::LoadU(d, in));
  const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(w, 0x8000));
  const auto magnitude = hn::And(bits, hn::Set(w, 0x7fffffff));
  const auto narrow = kT == DType::kF16 ? NarrowF16(d, magnitude) : NarrowBF16(d, magnitude);
  const hn::Rebind<uint16_t, D> halves;
  hn::StoreU(hn::DemoteTo(halves, hn::Or(sign, narrow)), halves, out);
}

void HalvesToFloats(DType t, const uint16_t* in, float* out, size_t n) {
  if (t == DType::kF16)
    ForEachFloat(n, [&](auto d, size_t i) { WidenAt<DType::kF16>(d, in + i, out + i); });
  else
    ForEachFloat(n, [&](auto d, size_t i) { WidenAt<DType::kBF16>(d, in + i, out + i); });
}

void FloatsToHalves(DType t, const float* in, uint16_t* out, size_t n) {
  if (t == DType::kF16)
    ForEachFloat(n, [&](auto d, size_t i) { NarrowAt<DType::kF16>(d, in + i, out + i); });
  else
    ForEachFloat(n, [&](auto d, size_t i) { NarrowAt<DType::kBF16>(d, in + i, out + i); });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace forge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace forge::cpu {
namespace {
HWY_EXPORT(NarrowToU8);
HWY_EXPORT(NarrowToI8);
HWY_EXPORT(WidenU8);
HWY_EXPORT(WidenI8);
HWY_EXPORT(TruncateToI32);
HWY_EXPORT(I32ToFloats);
HWY_EXPORT(HalvesToFloats);
HWY_EXPORT(FloatsToHalves);
}  // namespace

void F32ToU8(const uint8_t* f32, uint8_t* out, size_t n) {
  HWY_DYNAMIC_DISPATCH(NarrowToU8)(f32, out, n);
}
void F32ToI8(const uint8_t* f32, uint8_t* out, size_t n) {
  HWY_DYNAMIC_DISPATCH(NarrowToI8)(f32, out, n);
}
void U8ToF32(const uint8_t* in, uint8_t* f32, size_t n) {
  HWY_DYNAMIC_DISPATCH(WidenU8)(in, f32, n);
}
void I8ToF32(const uint8_t* in, uint8_t* f32, size_t n) {
  HWY_DYNAMIC_DISPATCH(WidenI8)(in, f32, n);
}
void F32ToI32(const uint8_t* f32, uint8_t* out, size_t n) {
  HWY_DYNAMIC_DISPATCH(TruncateToI32)(f32, out, n);
}
void I32ToF32(const uint8_t* in, uint8_t* f32, size_t n) {
  HWY_DYNAMIC_DISPATCH(I32ToFloats)(in, f32, n);
}
void WidenHalves(DType t, const uint16_t* in, float* out, size_t n) {
  HWY_DYNAMIC_DISPATCH(HalvesToFloats)(t, in, out, n);
}
void NarrowHalves(DType t, const float* in, uint16_t* out, size_t n) {
  HWY_DYNAMIC_DISPATCH(FloatsToHalves)(t, in, out, n);
}

}  // namespace forge::cpu
#endif
