// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <numbers>

#include "cpu_runtime/rows/row_loops.h"
#include "cpu_runtime/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu_runtime/rows/row_loops_vector.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, which decides what highway.h declares.
#include "cpu_runtime/lanes-inl.h"
#include "hwy/highway.h"
#include "ir/ops/elementwise/row_parts.h"

HWY_BEFORE_NAMESPACE();
namespace forge::cpu {
namespace HWY_NAMESPACE {

// Rows compiled for this instruction set: code of forge::ir could not be inlined here.
namespace rows {
using namespace forge::ir;  // NOLINT: what rows expect
#include "ir/ops/elementwise/families/exponential_rows.inc"
}  // namespace rows

using Whole = hn::ScalableTag<float>;
using Single = hn::CappedTag<float, 1>;
using Kind = ir::ReduceKind;

// Calls f(tag, i) for whole vectors from i on, then for what is left element by element.
template <class F>
HWY_INLINE void ForEach(size_t n, F f) {
  const size_t lanes = hn::Lanes(Whole());
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) f(Whole(), i);
  for (; i < n; ++i) f(Single(), i);
}

template <class D>
HWY_INLINE Lanes<D> At(D d, const float* p) {
  return Lanes<D>(hn::LoadU(d, p));
}

template <Kind kKind, class D>
HWY_INLINE Lanes<D> Both(Lanes<D> a, Lanes<D> b) {
  if constexpr (kKind == Kind::kMax)
    return max(a, b);
  else if constexpr (kKind == Kind::kMin)
    return min(a, b);
  else if constexpr (kKind == Kind::kProd)
    return a * b;
  else
    return a + b;
}

template <Kind kKind>
void Combine(float* into, const float* x, size_t n) {
  ForEach(n, [&](auto d, size_t i) {
    hn::StoreU(Both<kKind>(At(d, into + i), At(d, x + i)).v, d, into + i);
  });
}

template <Kind kKind, class D>
HWY_INLINE Lanes<Single> OverLanes(D d, Lanes<D> all) {
  if constexpr (kKind == Kind::kSum || kKind == Kind::kMean)
    return Lanes<Single>(hn::Set(Single(), hn::GetLane(hn::SumOfLanes(d, all.v))));
  HWY_ALIGN float parts[hn::MaxLanes(Whole())];
  hn::StoreU(all.v, d, parts);
  Lanes<Single> sum = At(Single(), parts);
  for (size_t i = 1; i < hn::Lanes(d); ++i) sum = Both<kKind>(sum, At(Single(), parts + i));
  return sum;
}

// Four running results where there are as many vectors: one would wait for itself.
template <Kind kKind>
float Fold(const float* x, size_t n, float start) {
  const Whole d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  Lanes<Single> sum(static_cast<double>(start));
  if (n >= lanes) {
    Lanes<Whole> a = At(d, x);
    i = lanes;
    if (n >= 4 * lanes) {
      Lanes<Whole> b = At(d, x + lanes), c = At(d, x + 2 * lanes), e = At(d, x + 3 * lanes);
      for (i = 4 * lanes; i + 4 * lanes <= n; i += 4 * lanes) {
        a = Both<kKind>(a, At(d, x + i));
        b = Both<kKind>(b, At(d, x + i + lanes));
        c = Both<kKind>(c, At(d, x + i + 2 * lanes));
        e = Both<kKind>(e, At(d, x + i + 3 * lanes));
      }
      a = Both<kKind>(Both<kKind>(a, b), Both<kKind>(c, e));
    }
    for (; i + lanes <= n; i += lanes) a = Both<kKind>(a, At(d, x + i));
    sum = Both<kKind>(sum, OverLanes<kKind>(d, a));
  }
  for (; i < n; ++i) sum = Both<kKind>(sum, At(Single(), x + i));
  return hn::GetLane(sum.v);
}

// e^x for x up to 88, beyond which it is infinite. What would be denormal is 0: beside the 1 in its
// row it is nothing, and the processor computes denormals in microcode, which took longer than all
// else where rows are masked.
template <class D>
HWY_INLINE Lanes<D> ExpOrZero(Lanes<D> x) {
  using N = rows::ExpF32Numbers;
  constexpr double kLeast = -87, kMost = 88;
  // 2^n is in range where x is, so that the power needs one step; elsewhere it is not used.
  const Lanes<D> n = round_even(x * std::numbers::log2e);
  const Lanes<D> r = fma(n, -N::kLn2Low, fma(n, -N::kLn2High, x)), rest = N::Rest(r);
  const Lanes<D> y = (fma(rest, r * r, r) + 1.0) * exp2_int(n);
  const Lanes<D> least(0.0), most(std::numeric_limits<double>::infinity());
  return select(x < kLeast, least, select(x > kMost, most, y));
}

// Inlined by force, as two chains of operations hide each other's latency and constants stay in
// registers.
HWY_FLATTEN float ExpSum(const float* x, float shift, float* out, size_t n) {
  const Whole d;
  const size_t lanes = hn::Lanes(d);
  const Lanes<Whole> from(static_cast<double>(shift));
  Lanes<Whole> a(0.0), b(0.0);
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const Lanes<Whole> p = ExpOrZero(At(d, x + i) - from),
                       q = ExpOrZero(At(d, x + i + lanes) - from);
    hn::StoreU(p.v, d, out + i);
    hn::StoreU(q.v, d, out + i + lanes);
    a = a + p;
    b = b + q;
  }
  Lanes<Single> sum = OverLanes<Kind::kSum>(d, a + b);
  for (; i < n; ++i) {
    const Lanes<Single> y = ExpOrZero(At(Single(), x + i) - static_cast<double>(shift));
    hn::StoreU(y.v, Single(), out + i);
    sum = sum + y;
  }
  return hn::GetLane(sum.v);
}

HWY_FLATTEN void ExpAdd(const float* x, const float* shift, float* out, float* sum, size_t n) {
  ForEach(n, [&](auto d, size_t i) {
    const auto y = ExpOrZero(At(d, x + i) - At(d, shift + i));
    hn::StoreU(y.v, d, out + i);
    hn::StoreU((At(d, sum + i) + y).v, d, sum + i);
  });
}

void Divide(float* x, const float* by, size_t n) {
  ForEach(n, [&](auto d, size_t i) { hn::StoreU((At(d, x + i) / At(d, by + i)).v, d, x + i); });
}

void DivideAll(float* x, float by, size_t n) {
  const float factor = 1 / by;
  ForEach(n, [&](auto d, size_t i) {
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), hn::Set(d, factor)), d, x + i);
  });
}

float SquaredDistances(const float* x, size_t n, float from) {
  const Whole d;
  const size_t lanes = hn::Lanes(d);
  const auto centre = hn::Set(d, from);
  auto a = hn::Zero(d), b = hn::Zero(d);
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto p = hn::Sub(hn::LoadU(d, x + i), centre),
               q = hn::Sub(hn::LoadU(d, x + i + lanes), centre);
    a = hn::MulAdd(p, p, a);
    b = hn::MulAdd(q, q, b);
  }
  float sum = hn::GetLane(OverLanes<Kind::kSum>(d, Lanes<Whole>(hn::Add(a, b))).v);
  for (; i < n; ++i) sum += (x[i] - from) * (x[i] - from);
  return sum;
}

RowStatistics<float> Normalise(const NormRow<float>& r) {
  const auto n = static_cast<float>(r.n);
  const float mean = r.subtract_mean ? Fold<Kind::kSum>(r.x, r.n, 0) / n : 0;
  const float deviation = std::sqrt(SquaredDistances(r.x, r.n, mean) / n + r.epsilon);
  const float scale = 1 / deviation;
  ForEach(r.n, [&](auto d, size_t i) {
    auto y = hn::Mul(hn::Sub(hn::LoadU(d, r.x + i), hn::Set(d, mean)), hn::Set(d, scale));
    if (r.gamma) y = hn::Mul(y, hn::LoadU(d, r.gamma + i));
    if (r.beta) y = hn::Add(y, hn::LoadU(d, r.beta + i));
    hn::StoreU(y, d, r.out + i);
  });
  return {mean, scale};
}

void GradientOfNorm(const NormGradientRow<float>& r) {
  const Whole whole;
  const size_t lanes = hn::Lanes(whole);
  const auto [mean, scale] = r.of_x;
  const auto dz = [&](auto d, size_t i) HWY_ATTR {
    const auto dy = hn::LoadU(d, r.dy + i);
    return r.gamma ? hn::Mul(dy, hn::LoadU(d, r.gamma + i)) : dy;
  };
  const auto z = [&, mean = mean, scale = scale](auto d, size_t i) HWY_ATTR {
    return hn::Mul(hn::Sub(hn::LoadU(d, r.x + i), hn::Set(d, mean)), hn::Set(d, scale));
  };
  auto sums = hn::Zero(whole), more_sums = sums, along = sums, more_along = sums;
  size_t i = 0;
  for (; i + 2 * lanes <= r.n; i += 2 * lanes) {
    const auto p = dz(whole, i), q = dz(whole, i + lanes);
    sums = hn::Add(sums, p);
    more_sums = hn::Add(more_sums, q);
    along = hn::MulAdd(p, z(whole, i), along);
    more_along = hn::MulAdd(q, z(whole, i + lanes), more_along);
  }
  float sum = hn::GetLane(hn::SumOfLanes(whole, hn::Add(sums, more_sums)));
  float product = hn::GetLane(hn::SumOfLanes(whole, hn::Add(along, more_along)));
  for (const Single d; i < r.n; ++i) {
    const float p = hn::GetLane(dz(d, i));
    sum += p;
    product += p * hn::GetLane(z(d, i));
  }
  const auto n = static_cast<float>(r.n);
  const float of_dz = r.centred ? sum / n : 0, of_product = product / n;
  ForEach(r.n, [&, scale = scale](auto d, size_t at) HWY_ATTR {
    const auto of_x = z(d, at), off = hn::Sub(dz(d, at), hn::Set(d, of_dz));
    const auto y = hn::NegMulAdd(of_x, hn::Set(d, of_product), off);
    hn::StoreU(hn::Mul(y, hn::Set(d, scale)), d, r.out + at);
    if (r.dgamma == nullptr) return;
    const auto dy = hn::LoadU(d, r.dy + at);
    hn::StoreU(hn::MulAdd(dy, of_x, hn::LoadU(d, r.dgamma + at)), d, r.dgamma + at);
    hn::StoreU(hn::Add(dy, hn::LoadU(d, r.dbeta + at)), d, r.dbeta + at);
  });
}

// The next kRows results at once, so that sums do not wait for each other.
template <size_t kRows>
HWY_INLINE void DotsOf(RowAndMatrix& p, float scale) {
  const Whole d;
  const size_t lanes = hn::Lanes(d);
  std::array<hn::Vec<Whole>, kRows> sums;
  std::array<float, kRows> rest = {};
  sums.fill(hn::Zero(d));
  size_t j = 0;
  for (; j + lanes <= p.n; j += lanes)
    for (size_t r = 0; r < kRows; ++r)
      sums[r] = hn::MulAdd(hn::LoadU(d, p.x + j),
                           hn::LoadU(d, p.m + static_cast<int64_t>(r) * p.stride + j), sums[r]);
  for (; j < p.n; ++j)
    for (size_t r = 0; r < kRows; ++r)
      rest[r] += p.x[j] * p.m[static_cast<int64_t>(r) * p.stride + static_cast<int64_t>(j)];
  for (size_t r = 0; r < kRows; ++r)
    *p.out++ = scale * (hn::GetLane(hn::SumOfLanes(d, sums[r])) + rest[r]);
  p.m += static_cast<int64_t>(kRows) * p.stride;
  p.rows -= kRows;
}
void Dots(RowAndMatrix p, float scale) {
  while (p.rows >= 8) DotsOf<8>(p, scale);
  while (p.rows > 0) DotsOf<1>(p, scale);
}

// Adds the next kRows rows.
template <size_t kRows>
HWY_INLINE void AddRowsOf(RowAndMatrix& p) {
  ForEach(p.n, [&](auto d, size_t j) {
    auto sum = hn::LoadU(d, p.out + j);
    for (size_t r = 0; r < kRows; ++r)
      sum = hn::MulAdd(hn::Set(d, p.x[r]),
                       hn::LoadU(d, p.m + static_cast<int64_t>(r) * p.stride + j), sum);
    hn::StoreU(sum, d, p.out + j);
  });
  p.x += kRows;
  p.m += static_cast<int64_t>(kRows) * p.stride;
  p.rows -= kRows;
}
void AddRows(RowAndMatrix p) {
  while (p.rows >= 8) AddRowsOf<8>(p);
  while (p.rows > 0) AddRowsOf<1>(p);
}

const RowLoops<float>& Rows() {
  static constexpr RowLoops<float> kLoops{
      {&Combine<Kind::kSum>, &Combine<Kind::kMean>, &Combine<Kind::kMax>, &Combine<Kind::kMin>,
       &Combine<Kind::kProd>},
      {&Fold<Kind::kSum>, &Fold<Kind::kMean>, &Fold<Kind::kMax>, &Fold<Kind::kMin>,
       &Fold<Kind::kProd>}};
  return kLoops;
}

const ExpLoops<float>& Exps() {
  static constexpr ExpLoops<float> kLoops{&ExpSum, &ExpAdd, &Divide, &DivideAll};
  return kLoops;
}

const RowProducts& Products() {
  static constexpr RowProducts kLoops{&Dots, &AddRows};
  return kLoops;
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace forge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace forge::cpu {
HWY_EXPORT(Rows);
HWY_EXPORT(Exps);
HWY_EXPORT(Products);
HWY_EXPORT(Normalise);
HWY_EXPORT(GradientOfNorm);
template <>
const RowLoops<float>& RowLoopsOf<float>() {
  return HWY_DYNAMIC_DISPATCH(Rows)();
}
template <>
const ExpLoops<float>& ExpLoopsOf<float>() {
  return HWY_DYNAMIC_DISPATCH(Exps)();
}
const RowProducts& RowProductLoops() { return HWY_DYNAMIC_DISPATCH(Products)(); }
template <>
RowStatistics<float> NormaliseRow<float>(const NormRow<float>& row) {
  return HWY_DYNAMIC_DISPATCH(Normalise)(row);
}
template <>
void NormGradient<float>(const NormGradientRow<float>& row) {
  HWY_DYNAMIC_DISPATCH(GradientOfNorm)(row);
}
}  // namespace forge::cpu
#endif
