// SPDX-License-Identifier: Apache-2.0
// Scans: threads share the rows; of a row that is alone each thread sums a part first, then begins
// its part with what the parts before came to. Columns go side by side.
#include "ir/ops/reduction/scan.h"

#include <algorithm>
#include <cstring>

#include "cpu_runtime/kernels/rows_along.h"
#include "cpu_runtime/parallel.h"
#include "cpu_runtime/rows/row_loops.h"
#include "cpu_runtime/tape/plain_scalar.h"
#include "cpu_runtime/tape/scalar_loops.h"

namespace forge::cpu {
namespace {

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
constexpr int64_t kFewColumns = 16;
constexpr int64_t kBlock = 256;  // elements or columns at a time, in the first cache

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
  const int64_t blocks = (plan.rows.inner + kBlock - 1) / kBlock;
  ParallelParts({plan.rows.outer * blocks, 1, plan.many() ? plan.threads : 1},
                [&](int, int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    const int64_t column = i % blocks * kBlock;
                    f(plan.FirstOf(i / blocks * plan.rows.inner + column),
                      static_cast<size_t>(std::min(kBlock, plan.rows.inner - column)));
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
      for (int64_t i = 0; i < n; i += kBlock) {
        const int64_t some = std::min(kBlock, n - i);
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
    alignas(64) T all[kBlock];
    std::fill_n(all, n, Start());
    for (int64_t i = 0; i < along; ++i) {
      const int64_t at = first + i * step;
      if (exclusive) {
        T x_at[kBlock];  // y may be x
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

template <class T>
class ScanCall final : public AnchorCall {
 public:
  ScanCall(const ScanPlan& plan, ir::ScanKind kind) : plan_(plan), kind_(kind) {}
  std::string_view kernel() const override { return "scan"; }
  absl::Status Run(const Arguments& a) const override {
    switch (kind_) {
      case ir::ScanKind::kProd:
        return RunAs<ir::ScanKind::kProd>(a);
      case ir::ScanKind::kMax:
        return RunAs<ir::ScanKind::kMax>(a);
      case ir::ScanKind::kMin:
        return RunAs<ir::ScanKind::kMin>(a);
      case ir::ScanKind::kSum:
      case ir::ScanKind::kLogSumExp:
        break;
    }
    return RunAs<ir::ScanKind::kSum>(a);
  }

 private:
  template <ir::ScanKind kKind>
  absl::Status RunAs(const Arguments& a) const {
    const PlainScanner<T, kKind> scanner{reinterpret_cast<const T*>(a.operands[plan_.operand]),
                                         reinterpret_cast<T*>(a.out), plan_.exclusive};
    if (plan_.rows.inner < kFewColumns)
      ScanRows(plan_, scanner);
    else
      ForColumns(plan_, [&](int64_t first, size_t n) {
        scanner.Columns(first, plan_.step(), plan_.rows.along, n);
      });
    return absl::OkStatus();
  }
  ScanPlan plan_;
  ir::ScanKind kind_;
};

// ---- logarithms of sums -------------------------------------------------------------------------

// The largest x so far, and the sum of exp(x - most).
template <class T>
struct LogSum {
  T most = -std::numeric_limits<T>::infinity(), sum = 0;
};

template <class T>
struct LogSumScanner {
  const T* x;
  T* y;
  ScalarLoop exp = ScalarLoopOf(static_cast<const ir::Exp*>(nullptr), kType);
  ScalarLoop log = ScalarLoopOf(static_cast<const ir::Log*>(nullptr), kType);

  static constexpr DType kType = std::is_same_v<T, double> ? DType::kF64 : DType::kF32;
  static void InPlace(ScalarLoop loop, T* v, size_t n) {
    const void* in[] = {v};
    loop(nullptr, in, v, n);
  }
  // Equal numbers differ by 0, even if they are infinite.
  static T Difference(T a, T b) { return a == b ? T{0} : a - b; }
  // The exponents with which `sum` shrinks and x is added.
  static T Raise(T most, T x, T& shrink, T& add) {
    const T larger = IsNan(most) || most >= x ? most : x;
    shrink = Difference(most, larger);
    add = Difference(x, larger);
    return larger;
  }

  LogSum<T> Start() const { return {}; }
  LogSum<T> Merge(const LogSum<T>& a, const LogSum<T>& b) const {
    T shrink, add;
    const T most = Raise(a.most, b.most, shrink, add);
    return {most, a.sum * std::exp(shrink) + b.sum * std::exp(add)};
  }
  LogSum<T> Fold(const Stretch& s) const {
    LogSum<T> all;
    if (s.step != 1 && s.step != -1) return Run<false>(s, all);
    const T* from = x + (s.step > 0 ? s.first : s.first - s.n + 1);
    constexpr auto kMax = static_cast<size_t>(ir::ReduceKind::kMax);
    all.most = RowLoopsOf<T>().fold[kMax](from, static_cast<size_t>(s.n), all.most);
    if (!std::isfinite(all.most)) return Run<false>(s, {});
    T terms[kBlock];
    for (int64_t i = 0; i < s.n; i += kBlock)
      all.sum += ExpLoopsOf<T>().exp_sum(from + i, all.most, terms,
                                         static_cast<size_t>(std::min(kBlock, s.n - i)));
    return all;
  }
  void Scan(const Stretch& s, const LogSum<T>& before) const { Run<true>(s, before); }

  template <bool kStores>
  LogSum<T> Run(const Stretch& s, LogSum<T> so_far) const {
    for (int64_t begin = 0; begin < s.n; begin += kBlock)
      so_far = RunBlock<kStores>(s.Part(begin, std::min(s.n, begin + kBlock)), so_far);
    return so_far;
  }
  template <bool kStores>
  LogSum<T> RunBlock(const Stretch& s, LogSum<T> so_far) const {
    alignas(64) T most[kBlock], sum[kBlock], shrink[kBlock], add[kBlock];
    const auto n = static_cast<size_t>(s.n);
    for (size_t i = 0; i < n; ++i) add[i] = x[s.first + static_cast<int64_t>(i) * s.step];
    const T before = so_far.most;
    so_far.most = PlainScanner<T, ir::ScanKind::kMax>::Prefixes(add, 1, most, s.n, before);
    if (so_far.most == before) {
#pragma omp simd
      for (size_t i = 0; i < n; ++i) add[i] = Difference(add[i], before);
      InPlace(exp, add, n);
      so_far.sum = PlainScanner<T, ir::ScanKind::kSum>::Prefixes(add, 1, sum, s.n, so_far.sum);
    } else {
#pragma omp simd
      for (size_t i = 0; i < n; ++i) {
        add[i] = Difference(add[i], most[i]);
        shrink[i] = Difference(i == 0 ? before : most[i - 1], most[i]);
      }
      InPlace(exp, add, n);
      InPlace(exp, shrink, n);
      for (size_t i = 0; i < n; ++i) sum[i] = so_far.sum = so_far.sum * shrink[i] + add[i];
    }
    if (!kStores) return so_far;
    InPlace(log, sum, n);
    for (size_t i = 0; i < n; ++i) y[s.first + static_cast<int64_t>(i) * s.step] = most[i] + sum[i];
    return so_far;
  }
  void Columns(int64_t first, int64_t step, int64_t along, size_t n) const {
    alignas(64) T most[kBlock], sum[kBlock], shrink[kBlock], add[kBlock], logs[kBlock];
    std::fill_n(most, n, LogSum<T>().most);
    std::fill_n(sum, n, T{0});
    for (int64_t k = 0; k < along; ++k) {
      const int64_t at = first + k * step;
      for (size_t i = 0; i < n; ++i)
        most[i] = Raise(most[i], x[at + static_cast<int64_t>(i)], shrink[i], add[i]);
      InPlace(exp, shrink, n);
      InPlace(exp, add, n);
      for (size_t i = 0; i < n; ++i) logs[i] = sum[i] = sum[i] * shrink[i] + add[i];
      InPlace(log, logs, n);
      for (size_t i = 0; i < n; ++i) y[at + static_cast<int64_t>(i)] = most[i] + logs[i];
    }
  }
};

template <class T>
class LogSumCall final : public AnchorCall {
 public:
  explicit LogSumCall(const ScanPlan& plan) : plan_(plan) {}
  std::string_view kernel() const override { return "scan_log_sum_exp"; }
  absl::Status Run(const Arguments& a) const override {
    const LogSumScanner<T> scanner{reinterpret_cast<const T*>(a.operands[plan_.operand]),
                                   reinterpret_cast<T*>(a.out)};
    if (plan_.rows.inner < kFewColumns)
      ScanRows(plan_, scanner);
    else
      ForColumns(plan_, [&](int64_t first, size_t n) {
        scanner.Columns(first, plan_.step(), plan_.rows.along, n);
      });
    return absl::OkStatus();
  }

 private:
  ScanPlan plan_;
};

// ---- extremes with their index ------------------------------------------------------------------

template <class T, bool kMost>
struct IndexScanner {
  struct Found {
    T value = StartOf<T>(kMost ? ir::ReduceKind::kMax : ir::ReduceKind::kMin);
    int64_t at = -1;  // an element, or none yet
  };
  using Values = PlainScanner<T, kMost ? ir::ScanKind::kMax : ir::ScanKind::kMin>;
  const T* x;
  T* y;
  int64_t* index;
  int64_t along, inner;

  static bool Taken(T so_far, T x) { return (kMost ? x >= so_far : x <= so_far) || IsNan(x); }
  Found Start() const { return {}; }
  Found Merge(const Found& a, const Found& b) const {
    return b.at >= 0 && Taken(a.value, b.value) ? b : a;
  }
  // The extreme, then the last element like it.
  Found Fold(const Stretch& s) const {
    Found all{Values{x, y, false}.Fold(s), -1};
    for (int64_t i = s.n - 1; i >= 0; --i) {
      const T v = x[s.first + i * s.step];
      if (v != all.value && !(IsNan(v) && IsNan(all.value))) continue;
      all.at = PlaceOf(s) + (s.step > 0 ? i : -i);
      break;
    }
    return all;
  }
  // The values, then where an element is the extreme so far.
  void Scan(const Stretch& s, Found so_far) const {
    int64_t place = PlaceOf(s);
    const int64_t next = s.step > 0 ? 1 : -1;
    for (int64_t begin = 0; begin < s.n; begin += kBlock) {
      const Stretch part = s.Part(begin, std::min(s.n, begin + kBlock));
      so_far.value = Values::Prefixes(x + part.first, s.step, y + part.first, part.n, so_far.value);
      for (int64_t i = 0; i < part.n; ++i, place += next) {
        const int64_t at = part.first + i * s.step;
        const bool taken = (x[at] == y[at]) | IsNan(x[at]);
        index[at] = so_far.at = taken ? place : so_far.at;
      }
    }
  }
  int64_t PlaceOf(const Stretch& s) const { return s.n == 0 ? 0 : s.first / inner % along; }
  void Columns(int64_t first, int64_t step, size_t n) const {
    Found all[kBlock];
    for (int64_t k = 0; k < along; ++k) {
      const int64_t row = first + k * step, place = row / inner % along;
      for (size_t i = 0; i < n; ++i) {
        const int64_t at = row + static_cast<int64_t>(i);
        if (Taken(all[i].value, x[at])) all[i] = {x[at], place};
        y[at] = all[i].value;
        index[at] = all[i].at;
      }
    }
  }
};

template <class T>
class IndexScanCall final : public AnchorCall {
 public:
  IndexScanCall(const ScanPlan& plan, bool most) : plan_(plan), most_(most) {}
  std::string_view kernel() const override { return "scan_with_index"; }
  absl::Status Run(const Arguments& a) const override {
    return most_ ? RunAs<true>(a) : RunAs<false>(a);
  }

 private:
  template <bool kMost>
  absl::Status RunAs(const Arguments& a) const {
    const IndexScanner<T, kMost> scanner{
        reinterpret_cast<const T*>(a.operands[plan_.operand]), reinterpret_cast<T*>(a.out),
        reinterpret_cast<int64_t*>(a.more[0]), plan_.rows.along, plan_.rows.inner};
    if (plan_.rows.inner < kFewColumns)
      ScanRows(plan_, scanner);
    else
      ForColumns(plan_, [&](int64_t first, size_t n) { scanner.Columns(first, plan_.step(), n); });
    return absl::OkStatus();
  }
  ScanPlan plan_;
  bool most_;
};

// ---- the kernel ---------------------------------------------------------------------------------

absl::StatusOr<ScanPlan> PlanOf(const AnchorSite& site, int64_t axis) {
  ScanPlan plan{.operand = *site.task.OperandOf(site.task.anchor()->in[0]),
                .threads = site.settings.threads};
  if (!IsRowMajor(site.out)) return Unimplemented("scan does not support permuted axes");
  FORGE_ASSIGN_OR_RETURN(plan.rows, RowsAlongOf(site.operands[plan.operand], axis));
  return plan;
}

absl::StatusOr<MadeAnchor> MakeScan(const AnchorSite& site) {
  const ir::Node& node = *site.task.anchor();
  const auto& op = *node.op.As<ir::Scan>();
  FORGE_ASSIGN_OR_RETURN(ScanPlan plan, PlanOf(site, op.axis));
  plan.exclusive = op.exclusive;
  plan.reverse = op.reverse;
  const auto make = [&]<class T>(T) -> std::unique_ptr<AnchorCall> {
    if constexpr (std::is_floating_point_v<T>)
      if (op.kind == ir::ScanKind::kLogSumExp) return std::make_unique<LogSumCall<T>>(plan);
    return std::make_unique<ScanCall<T>>(plan, op.kind);
  };
  return MadeAnchor{WithNumberType(site.operands[plan.operand].dtype, make), node.first_out};
}

absl::StatusOr<MadeAnchor> MakeIndexScan(const AnchorSite& site) {
  const ir::Node& node = *site.task.anchor();
  const auto& op = *node.op.As<ir::ScanWithIndex>();
  FORGE_ASSIGN_OR_RETURN(ScanPlan plan, PlanOf(site, op.axis));
  plan.reverse = op.reverse;
  const auto make = [&]<class T>(T) -> std::unique_ptr<AnchorCall> {
    return std::make_unique<IndexScanCall<T>>(plan, op.kind == ir::ScanKind::kMax);
  };
  return MadeAnchor{WithOrderedType(site.operands[plan.operand].dtype, make), node.first_out};
}

class Scan final : public Kernel {
 public:
  bool Knows(const Task& task) const override {
    return IsAnchoredBy<ir::Scan>(task) || IsAnchoredBy<ir::ScanWithIndex>(task);
  }
  Verdict Takes(const Task& task) const override {
    const DType t = task.body().type(task.anchor()->first_out).dtype();
    if (!Has(kOrderedTypes, t))
      return Verdict::No(fmt::format("scan has no kernel for {}", Name(t)));
    if (Verdict v = TakesEpilogue(task); !v) return v;
    return Verdict::Yes("scan");
  }
  std::vector<ir::EncodingChoice> Encodings(const Task&, const Settings&) const override {
    return {};
  }
  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    const bool plain = IsAnchoredBy<ir::Scan>(task);
    return MakeAnchorProgram(task, settings, plain ? MakeScan : MakeIndexScan);
  }
};

}  // namespace

const Kernel& ScanKernel() {
  static const Scan kKernel;
  return kKernel;
}

}  // namespace forge::cpu
