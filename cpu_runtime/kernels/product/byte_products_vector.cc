// SPDX-License-Identifier: Apache-2.0
// Both matrices are packed as pairs of 16-bit integers along the depth, whose products one
// instruction sums in 32 bits. oneDNN's sums are not exact: it rounds some in f32, and without VNNI
// it saturates pairs of products in 16 bits.
#include <algorithm>
#include <cstring>

#include "cpu_runtime/kernels/product/byte_products.h"
#include "cpu_runtime/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu_runtime/kernels/product/byte_products_vector.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, which decides what highway.h declares.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace forge::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Pair = int32_t;  // two 16-bit integers, the earlier one in the lower half
using D = hn::ScalableTag<Pair>;

// What is multiplied at a time: a panel of b has kPairs pairs of two vectors and stays in the first
// level of the cache.
constexpr int64_t kPairs = 256, kVectors = 2;
constexpr int64_t kRows = 6;  // with two vectors each, sums fit in 16 registers
constexpr int64_t kMostLanes = HWY_MAX_BYTES / sizeof(Pair);
static_assert((ByteProduct::kMaxRows + kVectors * kMostLanes) * kPairs * sizeof(Pair) <=
              ByteProduct::kScratchBytes);

HWY_INLINE Pair PairOf(int32_t first, int32_t second) {
  return static_cast<Pair>(static_cast<uint32_t>(second) << 16 |
                           (static_cast<uint32_t>(first) & 0xffffU));
}

template <class T>
int32_t At(const ByteMatrix& m, int64_t row, int64_t column) {
  return reinterpret_cast<const T*>(m.data)[row * m.row_stride + column * m.column_stride];
}

// Columns of a matrix, as many as the vectors of a panel hold, in runs that lie one behind another
// in memory: windows of an image lie so along each of its rows.
template <class T>
class PanelColumns {
 public:
  // `count` columns, or zeros behind the last one of `width`.
  PanelColumns(const ByteTable& b, const int64_t* columns, int64_t count, int64_t width)
      : rows_(b.rows), data_(reinterpret_cast<const T*>(b.data)) {
    for (int64_t j = 0; j < count; ++j) {
      if (j == 0 || columns[j] != columns[j - 1] + 1) runs_[used_++] = {columns[j], 0};
      ++runs_[used_ - 1].count;
    }
    whole_ = used_ == 1 && count == width;
  }
  // The elements of a row; `copy` has room for them, and zeros behind them.
  HWY_INLINE const T* Row(int64_t row, T* copy) const {
    const T* from = data_ + rows_[row];
    if (whole_) return from + runs_[0].from;
    T* to = copy;
    for (int i = 0; i < used_; ++i) {
      if (runs_[i].count == 1)
        *to = from[runs_[i].from];
      else
        std::memcpy(to, from + runs_[i].from, static_cast<size_t>(runs_[i].count));
      to += runs_[i].count;
    }
    return copy;
  }

 private:
  struct Run {
    int64_t from, count;
  };
  const int64_t* rows_;
  const T* data_;
  Run runs_[kVectors * kMostLanes];
  int used_ = 0;
  bool whole_;
};

// Part of the depth, and its numbers in pairs. The last one of an odd depth is followed by 0.
struct Depth {
  int64_t begin, end;
  int64_t pairs() const { return (end - begin + 1) / 2; }
};

// The rows of a one after another.
template <class T>
void PackRows(const ByteProduct& p, const Depth& depth, Pair* to) {
  const hn::ScalableTag<int16_t> halves;
  const hn::Rebind<T, decltype(halves)> bytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(halves));
  for (int64_t i = 0; i < p.rows; ++i) {
    int64_t k = depth.begin;
    // Neighbours in memory are pairs as they are.
    const T* row = reinterpret_cast<const T*>(p.a.data) + i * p.a.row_stride;
    for (; p.a.column_stride == 1 && lanes % 2 == 0 && k + lanes <= depth.end; k += lanes) {
      hn::StoreU(hn::PromoteTo(halves, hn::LoadU(bytes, row + k)), halves,
                 reinterpret_cast<int16_t*>(to));
      to += lanes / 2;
    }
    for (; k < depth.end; k += 2)
      *to++ = PairOf(At<T>(p.a, i, k), k + 1 < depth.end ? At<T>(p.a, i, k + 1) : 0);
  }
}

// The columns from `column` on, as many as the vectors of a panel hold; 0 behind the last one.
template <class T>
void PackPanel(const ByteProduct& p, const Depth& depth, int64_t column, Pair* to) {
  const D d;
  const hn::Rebind<T, D> bytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d)), width = kVectors * lanes;
  const PanelColumns<T> columns(p.b, p.b.columns + column, std::min(width, p.columns - column),
                                width);
  T first_copy[kVectors * kMostLanes] = {}, second_copy[kVectors * kMostLanes] = {};
  const T zeros[kVectors * kMostLanes] = {};  // what an odd depth ends with
  for (int64_t k = depth.begin; k < depth.end; k += 2, to += width) {
    const T* first = columns.Row(k, first_copy);
    const T* second = k + 1 < depth.end ? columns.Row(k + 1, second_copy) : zeros;
    for (int64_t j = 0; j < width; j += lanes) {
      const auto low = hn::And(hn::PromoteTo(d, hn::LoadU(bytes, first + j)), hn::Set(d, 0xffff));
      const auto high = hn::ShiftLeft<16>(hn::PromoteTo(d, hn::LoadU(bytes, second + j)));
      hn::Store(hn::Or(low, high), d, to + j);
    }
  }
}

using V = hn::Vec<D>;

// Where results lie, and how many there are in a row.
struct Results {
  int32_t* y;
  int64_t row_stride, column_stride, columns;
  bool add;  // to what is there
};

HWY_INLINE void StoreVector(V sum, const Results& to, int64_t row, int64_t column) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int32_t* y = to.y + row * to.row_stride + column * to.column_stride;
  if (to.column_stride == 1 && column + lanes <= to.columns)
    return hn::StoreU(to.add ? hn::Add(sum, hn::LoadU(d, y)) : sum, d, y);
  HWY_ALIGN int32_t sums[kMostLanes];
  hn::Store(sum, d, sums);
  for (int64_t j = 0; j < std::min(lanes, to.columns - column); ++j) {
    int32_t& at = y[j * to.column_stride];
    // Sums wrap.
    at = static_cast<int32_t>(static_cast<uint32_t>(sums[j]) +
                              (to.add ? static_cast<uint32_t>(at) : 0U));
  }
}

// Adds the products of pairs. Some processors sum neighbours in one register, others each in one of
// two.
HWY_INLINE V AddProducts(V a, V b, V sum, V& other) {
#if HWY_TARGET == HWY_SCALAR
  const auto half = [](V pair, int shift) {
    return static_cast<int16_t>(static_cast<uint32_t>(hn::GetLane(pair)) >> shift);
  };
  other = hn::Add(other, hn::Set(D(), half(a, 16) * half(b, 16)));
  return hn::Add(sum, hn::Set(D(), half(a, 0) * half(b, 0)));
#else
  const hn::Repartition<int16_t, D> halves;
  return hn::ReorderWidenMulAccumulate(D(), hn::BitCast(halves, a), hn::BitCast(halves, b), sum,
                                       other);
#endif
}
HWY_INLINE V Joined(V sum, V other) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Add(sum, other);
#else
  return hn::RearrangeToOddPlusEven(sum, other);
#endif
}

// a: [kHeight, pairs]; panel: [pairs, kVectors vectors]
template <int kHeight>
HWY_NOINLINE void MultiplyPanel(int64_t pairs, const Pair* a, const Pair* panel,
                                const Results& to) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sums[kHeight][kVectors], others[kHeight][kVectors];
#pragma GCC unroll 6
  for (int i = 0; i < kHeight; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sums[i][v] = others[i][v] = hn::Zero(d);
  for (int64_t k = 0; k < pairs; ++k, panel += kVectors * lanes) {
    V b[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) b[v] = hn::Load(d, panel + v * lanes);
#pragma GCC unroll 6
    for (int i = 0; i < kHeight; ++i) {
      const V x = hn::Set(d, a[i * pairs + k]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v)
        sums[i][v] = AddProducts(x, b[v], sums[i][v], others[i][v]);
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < kHeight; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
      StoreVector(Joined(sums[i][v], others[i][v]), to, i, v * lanes);
}

void MultiplyRows(int64_t rows, int64_t pairs, const Pair* a, const Pair* panel, Results to) {
  constexpr decltype(&MultiplyPanel<1>) kOf[] = {&MultiplyPanel<1>, &MultiplyPanel<2>,
                                                 &MultiplyPanel<3>, &MultiplyPanel<4>,
                                                 &MultiplyPanel<5>, &MultiplyPanel<kRows>};
  for (int64_t i = 0; i < rows; i += kRows, to.y += kRows * to.row_stride)
    kOf[std::min(kRows, rows - i) - 1](pairs, a + i * pairs, panel, to);
}

void Multiply(const ByteProduct& p) {
  const int64_t width = kVectors * static_cast<int64_t>(hn::Lanes(D()));
  auto* a = reinterpret_cast<Pair*>(p.scratch);
  Pair* panel = a + ByteProduct::kMaxRows * kPairs;
  const bool a_unsigned = p.a.dtype == DType::kU8, b_unsigned = p.b.dtype == DType::kU8;
  // A product over nothing is 0.
  for (int64_t k = 0; k == 0 || k < p.depth; k += 2 * kPairs) {
    const Depth depth{k, std::min(k + 2 * kPairs, p.depth)};
    (a_unsigned ? PackRows<uint8_t> : PackRows<int8_t>)(p, depth, a);
    for (int64_t j = 0; j < p.columns; j += width) {
      (b_unsigned ? PackPanel<uint8_t> : PackPanel<int8_t>)(p, depth, j, panel);
      MultiplyRows(p.rows, depth.pairs(), a, panel,
                   {.y = p.y + j * p.y_column_stride,
                    .row_stride = p.y_row_stride,
                    .column_stride = p.y_column_stride,
                    .columns = p.columns - j,
                    .add = k > 0});
    }
  }
}

}  // namespace

void MultiplyAny(const ByteProduct& p) { Multiply(p); }

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
