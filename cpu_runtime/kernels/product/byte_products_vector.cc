// SPDX-License-Identifier: Apache-2.0
// Both matrices are packed in groups along the depth, whose products one instruction sums in 32
// bits: pairs of 16-bit integers, or with VNNI four bytes. oneDNN's sums are not exact: it rounds
// some in f32, and without VNNI it saturates pairs of products in 16 bits.
#include <algorithm>
#include <array>
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
using Group = int32_t;  // of neighbours along the depth, the first one in the lowest bits
using D = hn::ScalableTag<Group>;
using V = hn::Vec<D>;

// What is multiplied at a time: a panel of b has kGroups groups of two vectors and stays in the
// first level of the cache.
constexpr int64_t kGroups = 128, kVectors = 2;
constexpr int64_t kRows = 6;  // with two vectors each, sums fit in 16 registers
constexpr int64_t kMostLanes = HWY_MAX_BYTES / sizeof(Group);
static_assert((ByteProduct::kMaxRows + kVectors * kMostLanes) * kGroups * sizeof(Group) <=
              ByteProduct::kScratchBytes);

// A group of two 16-bit integers.
struct Pairs {
  static constexpr int64_t kElements = 2;
};

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

// Part of the depth. What its last group lacks is 0.
struct Depth {
  int64_t begin, end;
  bool in_order;  // its elements of a column of b lie one behind another
  template <class G>
  int64_t Groups() const {
    return (end - begin + G::kElements - 1) / G::kElements;
  }
};

// Adds products to sums. Some processors sum neighbours in one register, others each in one of two.
HWY_INLINE V AddProducts(Pairs, V a, V b, V sum, V& other) {
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

// The rows of a one after another; `starts`: what the sums of each row begin with.
template <class T>
void PackRows(Pairs, const ByteProduct& p, const Depth& depth, Group* to, int32_t* starts) {
  const hn::ScalableTag<int16_t> halves;
  const hn::Rebind<T, decltype(halves)> bytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(halves));
  std::fill_n(starts, p.rows, 0);
  for (int64_t i = 0; i < p.rows; ++i) {
    int64_t k = depth.begin;
    // Neighbours in memory are pairs as they are.
    const T* row = reinterpret_cast<const T*>(p.a.data) + i * p.a.row_stride;
    for (; p.a.column_stride == 1 && lanes % 2 == 0 && k + lanes <= depth.end; k += lanes) {
      hn::StoreU(hn::PromoteTo(halves, hn::LoadU(bytes, row + k)), halves,
                 reinterpret_cast<int16_t*>(to));
      to += lanes / 2;
    }
    for (; k < depth.end; k += 2) {
      const int32_t first = At<T>(p.a, i, k), second = k + 1 < depth.end ? At<T>(p.a, i, k + 1) : 0;
      *to++ = static_cast<Group>(static_cast<uint32_t>(second) << 16 |
                                 (static_cast<uint32_t>(first) & 0xffffU));
    }
  }
}

// The columns from `column` on, as many as the vectors of a panel hold; 0 behind the last one.
// `starts`: what the sums of each column begin with.
template <class T>
void PackPanel(Pairs, const ByteProduct& p, const Depth& depth, int64_t column, Group* to,
               int32_t* starts) {
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
  std::fill_n(starts, width, 0);
}

// ---- VNNI

#if HWY_TARGET == HWY_AVX3
// A group of four bytes. VNNI multiplies bytes without sign by bytes with sign: those of b are
// packed plus 128 where they have one, and those of a minus 128 where they have none.
struct Quads {
  static constexpr int64_t kElements = 4;
};

// As assembly, since Highway 1.0 has no such target.
HWY_INLINE V AddProducts(Quads, V a, V b, V sum, V&) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(b.raw), "v"(a.raw));
  return sum;
}

// Where a' = a - x and b' = b + y are packed, a b sums to a' b' + x b' - y a' - x y.
template <class T>
void PackRows(Quads, const ByteProduct& p, const Depth& depth, Group* to, int32_t* starts) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const bool subtract = std::is_same_v<T, uint8_t>;
  const int32_t x = subtract ? 128 : 0, y = p.b.dtype == DType::kI8 ? 128 : 0;
  const int64_t count = depth.end - depth.begin;
  for (int64_t i = 0; i < p.rows; ++i, to += depth.Groups<Quads>()) {
    const T* row =
        reinterpret_cast<const T*>(p.a.data) + i * p.a.row_stride + depth.begin * p.a.column_stride;
    V sums = hn::Zero(d), unused = sums;
    int64_t k = 0;
    for (; p.a.column_stride == 1 && k + 4 * lanes <= count; k += 4 * lanes) {
      const V v = hn::Xor(hn::LoadU(d, reinterpret_cast<const Group*>(row + k)),
                          hn::Set(d, subtract ? static_cast<Group>(0x80808080U) : 0));
      hn::StoreU(v, d, to + k / 4);
      sums = AddProducts(Quads(), v, hn::Set(d, 0x01010101), sums, unused);
    }
    int32_t sum = hn::GetLane(hn::SumOfLanes(d, sums));
    if (k < count) to[depth.Groups<Quads>() - 1] = 0;
    auto* bytes = reinterpret_cast<int8_t*>(to);
    for (; k < count; ++k) sum += bytes[k] = static_cast<int8_t>(row[k * p.a.column_stride] - x);
    starts[i] = -y * (sum + x * static_cast<int32_t>(count));
  }
}

using Bytes16 = hn::FixedTag<uint8_t, 16>;
using Groups4 = hn::Repartition<Group, Bytes16>;

// 16 columns of four rows, a group for each.
HWY_INLINE std::array<hn::Vec<Groups4>, 4> Interleaved(const uint8_t* const rows[4], int64_t j) {
  const Bytes16 bytes;
  const Groups4 groups;
  const hn::Repartition<uint16_t, Bytes16> halves;
  const auto a = hn::LoadU(bytes, rows[0] + j), b = hn::LoadU(bytes, rows[1] + j),
             c = hn::LoadU(bytes, rows[2] + j), d = hn::LoadU(bytes, rows[3] + j);
  const auto ab = hn::BitCast(halves, hn::InterleaveLower(bytes, a, b)),
             cd = hn::BitCast(halves, hn::InterleaveLower(bytes, c, d)),
             ab_upper = hn::BitCast(halves, hn::InterleaveUpper(bytes, a, b)),
             cd_upper = hn::BitCast(halves, hn::InterleaveUpper(bytes, c, d));
  return {hn::BitCast(groups, hn::InterleaveLower(halves, ab, cd)),
          hn::BitCast(groups, hn::InterleaveUpper(halves, ab, cd)),
          hn::BitCast(groups, hn::InterleaveLower(halves, ab_upper, cd_upper)),
          hn::BitCast(groups, hn::InterleaveUpper(halves, ab_upper, cd_upper))};
}

constexpr int64_t kWidth = kVectors * kMostLanes;

// Columns whose elements lie one behind another: a group is one number in memory.
void PackColumns(const ByteProduct& p, const Depth& depth, int64_t column, Group flips, Group* to) {
  const int64_t count = depth.end - depth.begin, last = count % Quads::kElements;
  for (int64_t j = 0; j < kWidth; ++j) {
    const uint8_t* from =
        p.b.data + p.b.rows[depth.begin] + p.b.columns[std::min(column + j, p.columns - 1)];
    Group* group = to + j;
    for (int64_t k = 0; k + Quads::kElements <= count; k += Quads::kElements, group += kWidth) {
      std::memcpy(group, from + k, sizeof(Group));
      *group ^= flips;
    }
    if (last == 0) continue;
    *group = 0;
    std::memcpy(group, from + count - last, static_cast<size_t>(last));
    *group ^= static_cast<Group>(static_cast<uint32_t>(flips) >> (8 * (Quads::kElements - last)));
  }
}

void PackRowsOfColumns(const ByteProduct& p, const Depth& depth, int64_t column, Group flips,
                       Group* to) {
  const Groups4 groups;
  const PanelColumns<uint8_t> columns(p.b, p.b.columns + column,
                                      std::min(kWidth, p.columns - column), kWidth);
  uint8_t copies[4][kWidth] = {};
  const uint8_t zeros[kWidth] = {};
  for (int64_t k = depth.begin; k < depth.end; k += 4, to += kWidth) {
    const uint8_t* rows[4];
    const int64_t there = std::min<int64_t>(4, depth.end - k);
    for (int64_t r = 0; r < 4; ++r) rows[r] = r < there ? columns.Row(k + r, copies[r]) : zeros;
    const auto flip =
        hn::Set(groups, static_cast<Group>(static_cast<uint32_t>(flips) >> (8 * (4 - there))));
    for (int64_t j = 0; j < kWidth; j += 16) {
      const auto parts = Interleaved(rows, j);
#pragma GCC unroll 4
      for (size_t i = 0; i < 4; ++i)
        hn::Store(hn::Xor(parts[i], flip), groups, to + j + 4 * static_cast<int64_t>(i));
    }
  }
}

template <class T>
void PackPanel(Quads, const ByteProduct& p, const Depth& depth, int64_t column, Group* to,
               int32_t* starts) {
  const auto flips = static_cast<Group>(std::is_same_v<T, int8_t> ? 0x80808080U : 0);
  (depth.in_order ? PackColumns : PackRowsOfColumns)(p, depth, column, flips, to);
  const D d;
  if (p.a.dtype == DType::kI8) {
    std::fill_n(starts, kWidth, 0);
    return;
  }
  const V x = hn::Set(d, 0x01010101);
  for (int64_t v = 0; v < kWidth; v += kMostLanes) {
    V sum = hn::Zero(d), unused = sum;
    for (int64_t k = 0; k < depth.Groups<Quads>(); ++k)
      sum = AddProducts(Quads(), x, hn::Load(d, to + k * kWidth + v), sum, unused);
    hn::Store(hn::ShiftLeft<7>(sum), d, starts + v);
  }
}
#endif

// ---- products

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

// Rows of a, a panel of b, and what the sums of each row and of each column begin with.
struct Packed {
  int64_t groups;
  const Group *a, *panel;
  const int32_t *row_starts, *column_starts;
};

template <class G, int kHeight>
HWY_NOINLINE void MultiplyPanel(const Packed& p, const Results& to) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sums[kHeight][kVectors], others[kHeight][kVectors];
#pragma GCC unroll 6
  for (int i = 0; i < kHeight; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      sums[i][v] = hn::Add(hn::Set(d, p.row_starts[i]), hn::Load(d, p.column_starts + v * lanes));
      others[i][v] = hn::Zero(d);
    }
  const Group* panel = p.panel;
  for (int64_t k = 0; k < p.groups; ++k, panel += kVectors * lanes) {
    V b[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) b[v] = hn::Load(d, panel + v * lanes);
#pragma GCC unroll 6
    for (int i = 0; i < kHeight; ++i) {
      const V x = hn::Set(d, p.a[i * p.groups + k]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v)
        sums[i][v] = AddProducts(G(), x, b[v], sums[i][v], others[i][v]);
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < kHeight; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
      StoreVector(Joined(sums[i][v], others[i][v]), to, i, v * lanes);
}

template <class G>
void MultiplyRows(int64_t rows, Packed p, Results to) {
  constexpr decltype(&MultiplyPanel<G, 1>) kOf[] = {&MultiplyPanel<G, 1>, &MultiplyPanel<G, 2>,
                                                    &MultiplyPanel<G, 3>, &MultiplyPanel<G, 4>,
                                                    &MultiplyPanel<G, 5>, &MultiplyPanel<G, kRows>};
  for (int64_t i = 0; i < rows; i += kRows) {
    kOf[std::min(kRows, rows - i) - 1](p, to);
    p.a += kRows * p.groups;
    p.row_starts += kRows;
    to.y += kRows * to.row_stride;
  }
}

Depth DepthFrom(const ByteProduct& p, int64_t begin, int64_t most) {
  const int64_t end = std::min(begin + most, p.depth);
  const int64_t *first = p.b.rows + begin, *last = p.b.rows + end;
  const auto jumps = [](int64_t a, int64_t b) { return b != a + 1; };
  return {begin, end, begin < end && std::adjacent_find(first, last, jumps) == last};
}

template <class G>
void Multiply(const ByteProduct& p) {
  const int64_t width = kVectors * static_cast<int64_t>(hn::Lanes(D()));
  auto* a = reinterpret_cast<Group*>(p.scratch);
  Group* panel = a + ByteProduct::kMaxRows * kGroups;
  int32_t row_starts[ByteProduct::kMaxRows];
  HWY_ALIGN int32_t column_starts[kVectors * kMostLanes];
  const bool a_unsigned = p.a.dtype == DType::kU8, b_unsigned = p.b.dtype == DType::kU8;
  constexpr int64_t kDepth = kGroups * G::kElements;
  // A product over nothing is 0.
  for (int64_t k = 0; k == 0 || k < p.depth; k += kDepth) {
    const Depth depth = DepthFrom(p, k, kDepth);
    if (a_unsigned)
      PackRows<uint8_t>(G(), p, depth, a, row_starts);
    else
      PackRows<int8_t>(G(), p, depth, a, row_starts);
    for (int64_t j = 0; j < p.columns; j += width) {
      if (b_unsigned)
        PackPanel<uint8_t>(G(), p, depth, j, panel, column_starts);
      else
        PackPanel<int8_t>(G(), p, depth, j, panel, column_starts);
      MultiplyRows<G>(p.rows, {depth.Groups<G>(), a, panel, row_starts, column_starts},
                      {.y = p.y + j * p.y_column_stride,
                       .row_stride = p.y_row_stride,
                       .column_stride = p.y_column_stride,
                       .columns = p.columns - j,
                       .add = k > 0});
    }
  }
}

}  // namespace

void MultiplyAny(const ByteProduct& p) {
#if HWY_TARGET == HWY_AVX3
  if (p.vnni) return Multiply<Quads>(p);
#endif
  Multiply<Pairs>(p);
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

bool HasVnni() {
#if HWY_ARCH_X86
  return __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

void MultiplyBytes(const ByteProduct& p) { HWY_DYNAMIC_DISPATCH(MultiplyAny)(p); }

}  // namespace forge::cpu
#endif
