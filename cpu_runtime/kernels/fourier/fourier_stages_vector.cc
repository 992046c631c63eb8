// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/kernels/fourier/fourier_stages.h"
#include "cpu_runtime/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu_runtime/kernels/fourier/fourier_stages_vector.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, which decides what highway.h declares.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace forge::cpu {
namespace HWY_NAMESPACE {
namespace fourier {

namespace hn = hwy::HWY_NAMESPACE;

// Vectors of complex numbers.
template <class D>
struct Numbers {
  hn::Vec<D> re, im;
};
template <class D>
HWY_INLINE Numbers<D> operator+(Numbers<D> a, Numbers<D> b) {
  return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)};
}
template <class D>
HWY_INLINE Numbers<D> operator-(Numbers<D> a, Numbers<D> b) {
  return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)};
}
template <class D>
HWY_INLINE Numbers<D> operator*(Numbers<D> a, Numbers<D> b) {
  return {hn::NegMulAdd(a.im, b.im, hn::Mul(a.re, b.re)),
          hn::MulAdd(a.re, b.im, hn::Mul(a.im, b.re))};
}
template <class D>
HWY_INLINE Numbers<D> TimesMinusI(Numbers<D> a) {
  return {a.im, hn::Neg(a.re)};
}

template <class D, class T>
HWY_INLINE Numbers<D> Load(D d, const FourierParts<const T>& x, int64_t at) {
  return {x.re != nullptr ? hn::LoadU(d, x.re + at) : hn::Zero(d),
          x.im != nullptr ? hn::LoadU(d, x.im + at) : hn::Zero(d)};
}
template <class D, class T>
HWY_INLINE void Store(D d, Numbers<D> v, const FourierParts<T>& y, int64_t at) {
  hn::StoreU(v.re, d, y.re + at);
  hn::StoreU(v.im, d, y.im + at);
}

// Calls f(tag, i) for whole vectors of n elements, then for what is left.
template <class T, class F>
HWY_INLINE void EachVector(int64_t n, F f) {
  const hn::ScalableTag<T> whole;
  const hn::CappedTag<T, 4> four;
  const hn::CappedTag<T, 1> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(whole));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) f(whole, i);
  if (hn::Lanes(four) == 4)
    for (; i + 4 <= n; i += 4) f(four, i);
  for (; i < n; ++i) f(one, i);
}

// ---- transforms of a few numbers ----------------------------------------------------------------

template <int kRadix, class D, class T>
HWY_INLINE void TransformOdd(D d, const T* roots, int64_t radix, Numbers<D>* a) {
  const int64_t n = kRadix > 0 ? kRadix : radix, half = (n - 1) / 2;
  constexpr int kHalves = kRadix > 0 ? (kRadix - 1) / 2 : (kLargestRadix - 1) / 2;
  Numbers<D> sums[kHalves], differences[kHalves];
  Numbers<D> all = a[0];
#pragma GCC unroll 3
  for (int64_t j = 1; j <= half; ++j) {
    sums[j - 1] = a[j] + a[n - j];
    differences[j - 1] = a[j] - a[n - j];
    all = all + sums[j - 1];
  }
  const Numbers<D> first = a[0];
#pragma GCC unroll 3
  for (int64_t k = 1; k <= half; ++k) {
    Numbers<D> even = first, odd{hn::Zero(d), hn::Zero(d)};
#pragma GCC unroll 3
    for (int64_t j = 1; j <= half; ++j) {
      const T* root = roots + 2 * (j * k % n);
      const auto cosine = hn::Set(d, root[0]), sine = hn::Set(d, root[1]);
      const Numbers<D> sum = sums[j - 1], difference = differences[j - 1];
      even = {hn::MulAdd(cosine, sum.re, even.re), hn::MulAdd(cosine, sum.im, even.im)};
      odd = {hn::MulAdd(sine, difference.re, odd.re), hn::MulAdd(sine, difference.im, odd.im)};
    }
    const Numbers<D> turned = TimesMinusI(odd);
    a[k] = even + turned;
    a[n - k] = even - turned;
  }
  a[0] = all;
}

template <int kRadix, class D, class T>
HWY_INLINE void Transform(D d, const FourierStage<T>& s, Numbers<D>* a) {
  if constexpr (kRadix == 2) {
    const Numbers<D> sum = a[0] + a[1];
    a[1] = a[0] - a[1];
    a[0] = sum;
  } else if constexpr (kRadix == 4) {
    const Numbers<D> even = a[0] + a[2], odd = a[1] + a[3];
    const Numbers<D> low = a[0] - a[2], high = TimesMinusI(a[1] - a[3]);
    a[0] = even + odd, a[1] = low + high, a[2] = even - odd, a[3] = low - high;
  } else {
    TransformOdd<kRadix>(d, s.roots.data(), s.radix, a);
  }
}

// ---- stages -------------------------------------------------------------------------------------

// Rows whose neighbours fill vectors: one factor for all of them, which is 1 unless kTurns. kRadix:
// 0 for any odd one.
template <int kRadix, bool kTurns, class T>
void RunRows(const FourierStage<T>& s, const FourierParts<const T>& x, const FourierParts<T>& y,
             int64_t p, int64_t q, int64_t columns) {
  const int64_t n = kRadix > 0 ? kRadix : s.radix;
  const T* turns = s.turns.data() + 2 * (n - 1) * p;
  const int64_t from = (q + s.step * p) * x.row, to = (q + s.step * n * p) * y.row;
  const int64_t x_step = s.step * s.count * x.row, y_step = s.step * y.row;
  EachVector<T>(columns, [&](auto d, int64_t c) HWY_ATTR {
    Numbers<decltype(d)> a[kRadix > 0 ? kRadix : kLargestRadix];
#pragma GCC unroll 8
    for (int64_t j = 0; j < n; ++j) a[j] = Load(d, x, from + j * x_step + c);
    Transform<kRadix>(d, s, a);
    Store(d, a[0], y, to + c);
#pragma GCC unroll 8
    for (int64_t k = 1; k < n; ++k) {
      const T* turn = turns + 2 * (k - 1);
      if constexpr (kTurns)
        a[k] = a[k] * Numbers<decltype(d)>{hn::Set(d, turn[0]), hn::Set(d, turn[1])};
      Store(d, a[k], y, to + k * y_step + c);
    }
  });
}

template <int kRadix, class T>
void RunStage(const FourierStage<T>& s, const FourierParts<const T>& x, const FourierParts<T>& y,
              int64_t columns) {
  // Rows without gaps are one.
  const bool joined = x.row == columns && y.row == columns;
  const int64_t rows = joined ? 1 : s.step;
  for (int64_t p = 0; p < s.count; ++p)
    for (int64_t q = 0; q < rows; ++q)
      (p == 0 ? RunRows<kRadix, false, T>
              : RunRows<kRadix, true, T>)(s, x, y, p, q, joined ? s.step * columns : columns);
}

// ---- stages of one column and few neighbours
// -----------------------------------------------------

// Vectors of a known number of lanes, more than one.
#undef FORGE_HAS_RUNS
#define FORGE_HAS_RUNS (HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE)
#if FORGE_HAS_RUNS

// The factors of radix 4 for neighbours from `at` on.
template <class D, class T>
HWY_INLINE void Turn(D d, const FourierStage<T>& s, int64_t at, Numbers<D>* a) {
  const int64_t part = s.count * s.step;
  const T* turns = s.spread.data() + at;
#pragma GCC unroll 4
  for (int64_t k = 1; k < 4; ++k, turns += 2 * part)
    a[k] = a[k] * Numbers<D>{hn::LoadU(d, turns), hn::LoadU(d, turns + part)};
}

template <class D, class T>
HWY_INLINE void LoadFour(D d, const FourierStage<T>& s, const FourierParts<const T>& x, int64_t at,
                         Numbers<D>* a) {
#pragma GCC unroll 4
  for (int64_t j = 0; j < 4; ++j) a[j] = Load(d, x, at + j * s.count * s.step);
  Transform<4>(d, s, a);
  Turn(d, s, at, a);
}

// The first stage of one column: element k of place p goes to 4 p + k.
template <class T>
void RunFirst(const FourierStage<T>& s, const FourierParts<const T>& x, const FourierParts<T>& y) {
  EachVector<T>(s.count, [&](auto d, int64_t p) HWY_ATTR {
    Numbers<decltype(d)> a[4];
    LoadFour(d, s, x, p, a);
    hn::StoreInterleaved4(a[0].re, a[1].re, a[2].re, a[3].re, d, y.re + 4 * p);
    hn::StoreInterleaved4(a[0].im, a[1].im, a[2].im, a[3].im, d, y.im + 4 * p);
  });
}

// Stores runs of four elements of each vector in turns.
template <class D, class V, class T>
HWY_INLINE void StoreRuns(D d, V a, V b, V c, V e, T* to) {
  constexpr size_t kRuns = hn::MaxLanes(D()) / 4;
  const size_t lanes = hn::Lanes(d);
  if constexpr (kRuns <= 1) {
    hn::StoreU(a, d, to);
    hn::StoreU(b, d, to + lanes);
    hn::StoreU(c, d, to + 2 * lanes);
    hn::StoreU(e, d, to + 3 * lanes);
  } else if constexpr (kRuns == 2) {
    hn::StoreU(hn::ConcatLowerLower(d, b, a), d, to);
    hn::StoreU(hn::ConcatLowerLower(d, e, c), d, to + lanes);
    hn::StoreU(hn::ConcatUpperUpper(d, b, a), d, to + 2 * lanes);
    hn::StoreU(hn::ConcatUpperUpper(d, e, c), d, to + 3 * lanes);
  } else {  // four blocks of 128 bits
    const V ab_even = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b), a);
    const V ab_odd = hn::OddEvenBlocks(b, hn::SwapAdjacentBlocks(a));
    const V ce_even = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(e), c);
    const V ce_odd = hn::OddEvenBlocks(e, hn::SwapAdjacentBlocks(c));
    hn::StoreU(hn::ConcatLowerLower(d, ce_even, ab_even), d, to);
    hn::StoreU(hn::ConcatLowerLower(d, ce_odd, ab_odd), d, to + lanes);
    hn::StoreU(hn::ConcatUpperUpper(d, ce_even, ab_even), d, to + 2 * lanes);
    hn::StoreU(hn::ConcatUpperUpper(d, ce_odd, ab_odd), d, to + 3 * lanes);
  }
}

// The second stage of one column, of four neighbours: a vector holds several places.
template <class T>
void RunSecond(const FourierStage<T>& s, const FourierParts<const T>& x, const FourierParts<T>& y) {
  const hn::CappedTag<T, 4> four;
  using Whole = hn::CappedTag<T, hn::MaxLanes(hn::ScalableTag<T>()) < 16 ? 8 : 16>;
  const Whole whole;
  const auto lanes = static_cast<int64_t>(hn::Lanes(whole)), n = s.count * s.step;
  const auto run = [&](auto d, int64_t at) HWY_ATTR {
    Numbers<decltype(d)> a[4];
    LoadFour(d, s, x, at, a);
    StoreRuns(d, a[0].re, a[1].re, a[2].re, a[3].re, y.re + 4 * at);
    StoreRuns(d, a[0].im, a[1].im, a[2].im, a[3].im, y.im + 4 * at);
  };
  int64_t at = 0;
  for (; at + lanes <= n; at += lanes) run(whole, at);
  for (; at < n; at += 4) run(four, at);
}

#endif  // FORGE_HAS_RUNS

template <class T>
void Run(const FourierStage<T>& s, const FourierParts<const T>& x, const FourierParts<T>& y,
         int64_t columns) {
#if FORGE_HAS_RUNS
  const bool spread = columns == 1 && !s.spread.empty();
  if (spread && s.step == 1) return RunFirst(s, x, y);
  if (spread && s.step == 4 && hn::Lanes(hn::ScalableTag<T>()) >= 4) return RunSecond(s, x, y);
#endif
  switch (s.radix) {
    case 2:
      return RunStage<2>(s, x, y, columns);
    case 3:
      return RunStage<3>(s, x, y, columns);
    case 4:
      return RunStage<4>(s, x, y, columns);
    case 5:
      return RunStage<5>(s, x, y, columns);
    case 7:
      return RunStage<7>(s, x, y, columns);
    default:
      return RunStage<0>(s, x, y, columns);
  }
}

template <class T>
void Split(const T* x, T* re, T* im, int64_t n) {
  EachVector<T>(n, [&](auto d, int64_t i) HWY_ATTR {
    hn::Vec<decltype(d)> a, b;
    hn::LoadInterleaved2(d, x + 2 * i, a, b);
    hn::StoreU(a, d, re + i);
    hn::StoreU(b, d, im + i);
  });
}

template <class T>
void Join(const T* re, const T* im, T scale, T* y, int64_t n) {
  EachVector<T>(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto factor = hn::Set(d, scale);
    hn::StoreInterleaved2(hn::Mul(hn::LoadU(d, re + i), factor),
                          hn::Mul(hn::LoadU(d, im + i), factor), d, y + 2 * i);
  });
}

// y[k] = (a + b) / 2 - i turn (a - b) / 2 of a = z[k] and b the conjugate of z[half - k].
template <class T>
void StoreReal(const RealSignal<T>& r, const T* re, const T* im, T scale, T* y) {
  y[0] = (re[0] + im[0]) * scale, y[1] = T(0) * y[0];
  y[2 * r.half] = (re[0] - im[0]) * scale, y[2 * r.half + 1] = T(0) * y[2 * r.half];
  EachVector<T>(r.half - 1, [&](auto d, int64_t i) HWY_ATTR {
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const int64_t k = i + 1, mirrored = r.half - k - lanes + 1;
    const auto factor = hn::Set(d, scale * T(0.5));
    const Numbers<decltype(d)> a{hn::LoadU(d, re + k), hn::LoadU(d, im + k)};
    const Numbers<decltype(d)> b{hn::Reverse(d, hn::LoadU(d, re + mirrored)),
                                 hn::Neg(hn::Reverse(d, hn::LoadU(d, im + mirrored)))};
    const Numbers<decltype(d)> turn{hn::LoadU(d, r.turns_re.data() + k),
                                    hn::LoadU(d, r.turns_im.data() + k)};
    const auto sum = a + b + TimesMinusI((a - b) * turn);
    hn::StoreInterleaved2(hn::Mul(sum.re, factor), hn::Mul(sum.im, factor), d, y + 2 * k);
  });
}

}  // namespace fourier

void RunFourierOfFloats(const FourierStage<float>& stage, const FourierParts<const float>& x,
                        const FourierParts<float>& y, int64_t columns) {
  fourier::Run(stage, x, y, columns);
}
void RunFourierOfDoubles(const FourierStage<double>& stage, const FourierParts<const double>& x,
                         const FourierParts<double>& y, int64_t columns) {
  fourier::Run(stage, x, y, columns);
}
void SplitFloats(const float* x, float* re, float* im, int64_t n) { fourier::Split(x, re, im, n); }
void JoinFloats(const float* re, const float* im, float scale, float* y, int64_t n) {
  fourier::Join(re, im, scale, y, n);
}
void SplitDoubles(const double* x, double* re, double* im, int64_t n) {
  fourier::Split(x, re, im, n);
}
void JoinDoubles(const double* re, const double* im, double scale, double* y, int64_t n) {
  fourier::Join(re, im, scale, y, n);
}
void StoreRealOfFloats(const RealSignal<float>& r, const float* re, const float* im, float scale,
                       float* y) {
  fourier::StoreReal(r, re, im, scale, y);
}
void StoreRealOfDoubles(const RealSignal<double>& r, const double* re, const double* im,
                        double scale, double* y) {
  fourier::StoreReal(r, re, im, scale, y);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace forge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace forge::cpu {
HWY_EXPORT(SplitFloats);
HWY_EXPORT(JoinFloats);
HWY_EXPORT(SplitDoubles);
HWY_EXPORT(JoinDoubles);
HWY_EXPORT(StoreRealOfFloats);
HWY_EXPORT(StoreRealOfDoubles);
HWY_EXPORT(RunFourierOfFloats);
HWY_EXPORT(RunFourierOfDoubles);
template <>
void RunFourierStage(const FourierStage<float>& stage, const FourierParts<const float>& x,
                     const FourierParts<float>& y, int64_t columns) {
  HWY_DYNAMIC_DISPATCH(RunFourierOfFloats)(stage, x, y, columns);
}
template <>
void RunFourierStage(const FourierStage<double>& stage, const FourierParts<const double>& x,
                     const FourierParts<double>& y, int64_t columns) {
  HWY_DYNAMIC_DISPATCH(RunFourierOfDoubles)(stage, x, y, columns);
}
template <>
void SplitComplex(const float* x, float* re, float* im, int64_t n) {
  HWY_DYNAMIC_DISPATCH(SplitFloats)(x, re, im, n);
}
template <>
void JoinComplex(const float* re, const float* im, float scale, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(JoinFloats)(re, im, scale, y, n);
}
template <>
void SplitComplex(const double* x, double* re, double* im, int64_t n) {
  HWY_DYNAMIC_DISPATCH(SplitDoubles)(x, re, im, n);
}
template <>
void JoinComplex(const double* re, const double* im, double scale, double* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(JoinDoubles)(re, im, scale, y, n);
}
template <>
void RealSignal<float>::Store(const float* re, const float* im, float scale, float* y) const {
  HWY_DYNAMIC_DISPATCH(StoreRealOfFloats)(*this, re, im, scale, y);
}
template <>
void RealSignal<double>::Store(const double* re, const double* im, double scale, double* y) const {
  HWY_DYNAMIC_DISPATCH(StoreRealOfDoubles)(*this, re, im, scale, y);
}
}  // namespace forge::cpu
#endif
