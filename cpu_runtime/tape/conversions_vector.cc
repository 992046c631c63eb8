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

}  // namespace forge::cpu
#endif
