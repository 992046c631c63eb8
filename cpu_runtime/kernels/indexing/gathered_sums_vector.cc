// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/kernels/indexing/gathered_sums.h"
#include "cpu_runtime/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu_runtime/kernels/indexing/gathered_sums_vector.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, which decides what highway.h declares.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace forge::cpu {
namespace HWY_NAMESPACE {
namespace gathered {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE void SumAt(const GatheredSum<float>& s, D d, size_t i) {
  const hn::RebindToSigned<D> places;
  const auto none = hn::Zero(places);
  auto sum = hn::Zero(d);
  for (size_t k = 0; k < s.terms; ++k) {
    const auto place = hn::LoadU(places, s.places + k * s.stride + i);
    const auto inside = hn::RebindMask(d, hn::Gt(place, hn::Set(places, -1)));
    const auto x = hn::GatherIndex(d, s.x, hn::Max(place, none));
    sum =
        hn::MulAdd(hn::LoadU(d, s.weights + k * s.stride + i), hn::IfThenElseZero(inside, x), sum);
  }
  hn::StoreU(sum, d, s.y + i);
}

void Sum(const GatheredSum<float>& s) {
  const hn::ScalableTag<float> whole;
  const hn::CappedTag<float, 1> one;
  size_t i = 0;
  for (; i + hn::Lanes(whole) <= s.n; i += hn::Lanes(whole)) SumAt(s, whole, i);
  for (; i < s.n; ++i) SumAt(s, one, i);
}

}  // namespace gathered

void SumGatheredFloats(const GatheredSum<float>& s) { gathered::Sum(s); }

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace forge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace forge::cpu {
HWY_EXPORT(SumGatheredFloats);
template <>
void SumGathered(const GatheredSum<float>& s) {
  HWY_DYNAMIC_DISPATCH(SumGatheredFloats)(s);
}
template <>
void SumGathered(const GatheredSum<double>& s) {
  for (size_t i = 0; i < s.n; ++i) {
    double sum = 0;
    for (size_t k = 0; k < s.terms; ++k) {
      const int32_t place = s.places[k * s.stride + i];
      sum += s.weights[k * s.stride + i] * (place < 0 ? 0 : s.x[place]);
    }
    s.y[i] = sum;
  }
}
}  // namespace forge::cpu
#endif
