// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cpu_runtime/kernels/byte_products.h"
#include "cpu_runtime/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu_runtime/kernels/byte_products_vector.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, which decides what highway.h declares.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace forge::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// As many products of bytes as an f32 sums exactly: 256 * 255 * 255 < 2^24.
constexpr int64_t kExactDepth = 256;

// The columns of one vector from j on.
template <int kRows, class B, class D>
HWY_INLINE void Column(const ByteProduct& p, D d, int64_t j) {
  const hn::RebindToSigned<D> words;
  const hn::Rebind<B, D> bytes;
  const auto* b = static_cast<const B*>(p.b) + j;
  hn::Vec<decltype(words)> sums[kRows];
  for (auto& sum : sums) sum = hn::Zero(words);
  for (int64_t begin = 0; begin < p.depth; begin += kExactDepth) {
    const int64_t end = std::min(begin + kExactDepth, p.depth);
    hn::Vec<D> parts[kRows];
    for (auto& part : parts) part = hn::Zero(d);
    for (int64_t k = begin; k < end; ++k) {
      const auto x = hn::ConvertTo(d, hn::PromoteTo(words, hn::LoadU(bytes, b + k * p.b_stride)));
      for (int i = 0; i < kRows; ++i)
        parts[i] = hn::MulAdd(hn::Set(d, p.a[i * p.depth + k]), x, parts[i]);
    }
    for (int i = 0; i < kRows; ++i) sums[i] = hn::Add(sums[i], hn::ConvertTo(words, parts[i]));
  }
  for (int i = 0; i < kRows; ++i) hn::StoreU(sums[i], words, p.y + i * p.y_stride + j);
}

template <int kRows, class B>
void Multiply(const ByteProduct& p) {
  const hn::ScalableTag<float> whole;
  const hn::CappedTag<float, 1> single;
  const auto lanes = static_cast<int64_t>(hn::Lanes(whole));
  int64_t j = 0;
  for (; j + lanes <= p.columns; j += lanes) Column<kRows, B>(p, whole, j);
  for (; j < p.columns; ++j) Column<kRows, B>(p, single, j);
}

template <int kRows>
void MultiplyRows(const ByteProduct& p) {
  return p.b_type == DType::kU8 ? Multiply<kRows, uint8_t>(p) : Multiply<kRows, int8_t>(p);
}

void MultiplyAny(const ByteProduct& p) {
  if (p.rows == ByteProduct::kMaxRows) return MultiplyRows<ByteProduct::kMaxRows>(p);
  ByteProduct row = p;
  for (int64_t i = 0; i < p.rows; ++i, row.a += p.depth, row.y += p.y_stride) MultiplyRows<1>(row);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace forge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace forge::cpu {
namespace {
HWY_EXPORT(MultiplyAny);
}  // namespace

void MultiplyBytes(const ByteProduct& p) { HWY_DYNAMIC_DISPATCH(MultiplyAny)(p); }

}  // namespace forge::cpu
#endif
