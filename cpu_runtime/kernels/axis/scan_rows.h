// SPDX-License-Identifier: Apache-2.0
// The division of scans among threads, and the scans of sums, products and extremes.
#pragma once
#include <algorithm>
#include <vector>

#include "cpu_runtime/kernels/axis/rows_along.h"
#include "cpu_runtime/parallel.h"
#include "cpu_runtime/rows/row_loops.h"
#include "cpu_runtime/tape/plain_scalar.h"
#include "ir/ops/reduction/scan.h"

namespace forge::cpu {

// What all scans share.
struct ScanPlan {
  RowsAlong rows;
  bool exclusive = false, reverse = false;
  uint32_t operand = 0;
  int threads = 1;

  int64_t count() const { return rows.outer * rows.inner; }
  // The element at which a row begins, in the order of the scan, and the distance to the next.
  int64_t FirstOf(int64_t row) const {
    const int64_t base = row / rows.inner * rows.along * rows.inner + row % rows.inner;
    return reverse ? base + (rows.along - 1) * rows.inner : base;
  }
  int64_t step() const { return reverse ? -rows.inner : rows.inner; }
  bool many() const { return WorthThreads(4.0 * static_cast<double>(rows.elements())); }
};

// Elements of a row in the order of the scan.
struct Stretch {
  int64_t first, step, n;
  Stretch Part(int64_t begin, int64_t end) const {
    return {first + begin * step, step, end - begin};
  }
};

// Columns fewer than this are rows of elements far apart.
inline constexpr int64_t kFewScanColumns = 16;
inline constexpr int64_t kScanBlock = 256;  // elements or columns at a time, in the first cache

// Scans each row. Scanner: `State Start()`, `State Fold(Stretch)`, `State Merge(State, State)`,
// `void Scan(Stretch, State before)`.
template <class Scanner>
void ScanRows(const ScanPlan& plan, const Scanner& scanner) {
  const auto whole = [&](int64_t row) {
    return Stretch{plan.FirstOf(row), plan.step(), plan.rows.along};
  };
  const int64_t threads = plan.many() ? plan.threads : 1, along = plan.rows.along;
  if (plan.count() >= threads) {
    ParallelParts({plan.count(), 1, static_cast<int>(threads)},
                  [&](int, int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) scanner.Scan(whole(i), scanner.Start());
                  });
    return;
  }
  using State = decltype(scanner.Start());
  std::vector<State> before(static_cast<size_t>(threads), scanner.Start());
  for (int64_t row = 0; row < plan.count(); ++row) {
    const auto part = [&](int64_t p) {
      return whole(row).Part(along * p / threads, along * (p + 1) / threads);
    };
    ParallelParts({threads, 1, static_cast<int>(threads)}, [&](int, int64_t begin, int64_t end) {
      for (int64_t p = begin; p < std::min(end, threads - 1); ++p)
        before[static_cast<size_t>(p) + 1] = scanner.Fold(part(p));
    });
    for (size_t p = 1; p < before.size(); ++p)
      before[p] = p == 1 ? before[p] : scanner.Merge(before[p - 1], before[p]);
    ParallelParts({threads, 1, static_cast<int>(threads)}, [&](int, int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) scanner.Scan(part(p), before[static_cast<size_t>(p)]);
    });
  }
}

// Calls f(first, columns) for blocks of columns; `first` is the element at which the first begins.
template <class F>
void ForColumns(const ScanPlan& plan, F f) {
  const int64_t blocks = (plan.rows.inner + kScanBlock - 1) / kScanBlock;
  ParallelParts({plan.rows.outer * blocks, 1, plan.many() ? plan.threads : 1},
                [&](int, int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    const int64_t column = i % blocks * kScanBlock;
                    f(plan.FirstOf(i / blocks * plan.rows.inner + column),
                      static_cast<size_t>(std::min(kScanBlock, plan.rows.inner - column)));
                  }
                });
}

// ---- sums, products, extremes -------------------------------------------------------------------

constexpr ir::ReduceKind ReduceKindOf(ir::ScanKind kind) {
  constexpr ir::ReduceKind kKinds[] = {ir::ReduceKind::kSum, ir::ReduceKind::kProd,
                                       ir::ReduceKind::kMax, ir::ReduceKind::kMin};
  return kKinds[static_cast<size_t>(kind)];
}

template <class T, ir::ScanKind kKind>
struct PlainScanner {
  static constexpr auto kReduce = ReduceKindOf(kKind);
  const T* x;
  T* y;
  bool exclusive;

  static T Merge(T a, T b) {
    const Plain<T> p(a), q(b);
    if constexpr (kKind == ir::ScanKind::kMax)
      return max(p, q).v;
    else if constexpr (kKind == ir::ScanKind::kMin)
      return min(p, q).v;
    else if constexpr (kKind == ir::ScanKind::kProd)
      return (p * q).v;
    else
      return (p + q).v;
  }
  T Start() const { return StartOf<T>(kReduce); }
  T Fold(const Stretch& s) const {
    if (s.step == 1 || s.step == -1) {
      const int64_t lowest = s.step > 0 ? s.first : s.first - s.n + 1;
      return RowLoopsOf<T>().fold[static_cast<size_t>(kReduce)](x + lowest,
                                                                static_cast<size_t>(s.n), Start());
    }
    T all = Start();
    for (int64_t i = 0; i < s.n; ++i) all = Merge(all, x[s.first + i * s.step]);
    return all;
  }
  static T MergeNumbers(T a, T b) {
    if constexpr (kKind == ir::ScanKind::kMax)
      return a > b ? a : b;
    else
      return a < b ? a : b;
  }
  // Four elements at a time: each waits for the fourth before it alone.
  template <T (*kMerge)(T, T)>
  static T PrefixesBy(const T* from, int64_t step, T* to, int64_t n, T so_far) {
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
      const T* at = from + i * step;
      const T a = at[0], b = kMerge(a, at[step]), c = kMerge(b, at[2 * step]);
      const T d = kMerge(c, at[3 * step]);
      T* put = to + i * step;
      put[0] = kMerge(so_far, a);
      put[step] = kMerge(so_far, b);
      put[2 * step] = kMerge(so_far, c);
      put[3 * step] = so_far = kMerge(so_far, d);
    }
    for (; i < n; ++i) to[i * step] = so_far = kMerge(so_far, from[i * step]);
    return so_far;
  }
  // Where all elements are numbers, max and min are one instruction.
  static bool AllNumbers(const T* from, int64_t step, int64_t n, T so_far) {
    int others = IsNan(so_far);
    if (step == 1) {
#pragma omp simd reduction(| : others)
      for (int64_t i = 0; i < n; ++i) others |= IsNan(from[i]);
    } else {
      for (int64_t i = 0; i < n; ++i) others |= IsNan(from[i * step]);
    }
    return others == 0;
  }
  static T Prefixes(const T* from, int64_t step, T* to, int64_t n, T so_far) {
    constexpr bool kOrder = kKind == ir::ScanKind::kMax || kKind == ir::ScanKind::kMin;
    if constexpr (!kOrder || !std::is_floating_point_v<T>) {
      return PrefixesBy<Merge>(from, step, to, n, so_far);
    } else {
      for (int64_t i = 0; i < n; i += kScanBlock) {
        const int64_t some = std::min(kScanBlock, n - i);
        const T* x = from + i * step;
        T* y = to + i * step;
        so_far = AllNumbers(x, step, some, so_far)
                     ? PrefixesBy<MergeNumbers>(x, step, y, some, so_far)
                     : PrefixesBy<Merge>(x, step, y, some, so_far);
      }
      return so_far;
    }
  }
  void Scan(const Stretch& s, T so_far) const {
    if (!exclusive) {
      Prefixes(x + s.first, s.step, y + s.first, s.n, so_far);
      return;
    }
    for (int64_t i = 0; i < s.n; ++i) {
      const int64_t at = s.first + i * s.step;
      const T with = Merge(so_far, x[at]);
      y[at] = so_far;
      so_far = with;
    }
  }
  void Columns(int64_t first, int64_t step, int64_t along, size_t n) const {
    const auto combine = RowLoopsOf<T>().combine[static_cast<size_t>(kReduce)];
    alignas(64) T all[kScanBlock];
    std::fill_n(all, n, Start());
    for (int64_t i = 0; i < along; ++i) {
      const int64_t at = first + i * step;
      if (exclusive) {
        T x_at[kScanBlock];  // y may be x
        std::copy_n(x + at, n, x_at);
        std::copy_n(all, n, y + at);
        combine(all, x_at, n);
      } else {
        combine(all, x + at, n);
        std::copy_n(all, n, y + at);
      }
    }
  }
};

}  // namespace forge::cpu
