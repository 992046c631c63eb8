// SPDX-License-Identifier: Apache-2.0
// Scans: threads share the rows; of a row that is alone each thread sums a part first, then begins
// its part with what the parts before came to. Columns go side by side.
#include "ir/ops/reduction/scan.h"

#include <algorithm>

#include "cpu_runtime/kernels/axis/scan_rows.h"
#include "cpu_runtime/tape/scalar_loops.h"

namespace forge::cpu {
namespace {

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
    // Sums and products of integers wrap to the same bits with and without sign.
    constexpr bool kByBits =
        (kKind == ir::ScanKind::kSum || kKind == ir::ScanKind::kProd) && std::is_unsigned_v<T>;
    using S =
        typename std::conditional_t<kByBits, std::make_signed<T>, std::type_identity<T>>::type;
    const PlainScanner<S, kKind> scanner{reinterpret_cast<const S*>(a.operands[plan_.operand]),
                                         reinterpret_cast<S*>(a.out), plan_.exclusive};
    if (plan_.rows.inner < kFewScanColumns)
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
    T terms[kScanBlock];
    for (int64_t i = 0; i < s.n; i += kScanBlock)
      all.sum += ExpLoopsOf<T>().exp_sum(from + i, all.most, terms,
                                         static_cast<size_t>(std::min(kScanBlock, s.n - i)));
    return all;
  }
  void Scan(const Stretch& s, const LogSum<T>& before) const { Run<true>(s, before); }

  template <bool kStores>
  LogSum<T> Run(const Stretch& s, LogSum<T> so_far) const {
    for (int64_t begin = 0; begin < s.n; begin += kScanBlock)
      so_far = RunBlock<kStores>(s.Part(begin, std::min(s.n, begin + kScanBlock)), so_far);
    return so_far;
  }
  template <bool kStores>
  LogSum<T> RunBlock(const Stretch& s, LogSum<T> so_far) const {
    alignas(64) T most[kScanBlock], sum[kScanBlock], shrink[kScanBlock], add[kScanBlock];
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
    alignas(64) T most[kScanBlock], sum[kScanBlock], shrink[kScanBlock], add[kScanBlock],
        logs[kScanBlock];
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
    if (plan_.rows.inner < kFewScanColumns)
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
    for (int64_t begin = 0; begin < s.n; begin += kScanBlock) {
      const Stretch part = s.Part(begin, std::min(s.n, begin + kScanBlock));
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
    Found all[kScanBlock];
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
    if (plan_.rows.inner < kFewScanColumns)
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
