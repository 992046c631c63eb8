// SPDX-License-Identifier: Apache-2.0
// Softmax, its logarithm and its statistics, in floats. Not the library's: a NaN there reaches its
// own element only, not its row.
#include "ir/ops/reduction/softmax.h"

#include <algorithm>
#include <cmath>

#include "cpu_runtime/kernels/float_kernel.h"
#include "cpu_runtime/kernels/kernel.h"
#include "cpu_runtime/parallel.h"
#include "cpu_runtime/rows/row_loops.h"
#include "ir/op/axes.h"
#include "ir/ops/reduction/softmax_statistics.h"

namespace forge::cpu {
namespace {

// Gapless memory as [outer, along, inner].
struct Shape {
  int64_t outer, along, inner;
  double work() const { return 8.0 * static_cast<double>(outer * along * inner); }
};
absl::StatusOr<Shape> ShapeOf(const View& x, int64_t axis) {
  FORGE_ASSIGN_OR_RETURN(axis, ir::NormalAxis(axis, static_cast<int64_t>(x.shape.size())));
  const int64_t along = x.shape[static_cast<size_t>(axis)];
  int64_t rows = 1;
  for (size_t a = 0; a < x.shape.size(); ++a)
    rows *= static_cast<int64_t>(a) == axis ? 1 : x.shape[a];
  // A stride counts the elements of everything further in; that of a lone index means nothing.
  const int64_t inner = along < 2 || rows == 0 ? 1 : x.strides[static_cast<size_t>(axis)];
  return Shape{rows / inner, along, inner};
}

// Columns are taken so many at a time that what belongs to each stays in the first cache.
constexpr int64_t kPart = 256;
// Calls f(outer, first, columns) for all columns of the inner axis, part by part.
template <class F>
void ForColumns(const Shape& s, int threads, F f) {
  const int64_t parts = (s.inner + kPart - 1) / kPart;
  ParallelParts({s.outer * parts, 1, WorthThreads(s.work()) ? threads : 1},
                [&](int, int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    const int64_t first = i % parts * kPart;
                    f(i / parts, first, std::min(kPart, s.inner - first));
                  }
                });
}

template <class T>
class SoftmaxCall final : public AnchorCall {
 public:
  SoftmaxCall(Shape shape, const ir::Softmax& op, uint32_t operand, int threads)
      : s_(shape),
        // Of a row of -infinity alone every difference is then -infinity, and the sum 0.
        least_(op.masked_rows_zero ? std::numeric_limits<T>::lowest()
                                   : StartOf<T>(ir::ReduceKind::kMax)),
        log_(op.log),
        operand_(operand),
        threads_(threads) {}
  std::string_view kernel() const override { return "softmax"; }

  absl::Status Run(const Arguments& a) const override {
    const auto* x = reinterpret_cast<const T*>(a.operands[operand_]);
    auto* y = reinterpret_cast<T*>(a.out);
    ForColumns(s_, threads_, [&](int64_t outer, int64_t first, int64_t columns) {
      const int64_t at = outer * s_.along * s_.inner + first;
      if (s_.inner == 1)
        Row(x + at, y + at);
      else
        Columns(x + at, y + at, columns);
    });
    return absl::OkStatus();
  }

 private:
  static constexpr auto kMax = static_cast<size_t>(ir::ReduceKind::kMax);

  void Row(const T* x, T* y) const {
    const auto n = static_cast<size_t>(s_.along);
    const T most = RowLoopsOf<T>().fold[kMax](x, n, least_);
    const T sum = ExpLoopsOf<T>().exp_sum(x, most, y, n);
    if (log_) return Logarithm(x, most, std::log(sum), y, n);
    ExpLoopsOf<T>().divide_all(y, sum == 0 ? 1 : sum, n);
  }

  static void Logarithm(const T* x, T most, T log_sum, T* y, size_t n) {
    for (size_t i = 0; i < n; ++i) y[i] = x[i] - most - log_sum;
  }

  void Columns(const T* x, T* y, int64_t columns) const {
    const auto n = static_cast<size_t>(columns);
    alignas(64) T most[kPart], sums[kPart];
    std::fill_n(most, n, least_);
    std::fill_n(sums, n, T{0});
    for (int64_t k = 0; k < s_.along; ++k) RowLoopsOf<T>().combine[kMax](most, x + k * s_.inner, n);
    for (int64_t k = 0; k < s_.along; ++k)
      ExpLoopsOf<T>().exp_add(x + k * s_.inner, most, y + k * s_.inner, sums, n);
    if (log_) {
      for (size_t i = 0; i < n; ++i) sums[i] = std::log(sums[i]);
      for (int64_t k = 0; k < s_.along; ++k)
        for (size_t i = 0; i < n; ++i)
          y[k * s_.inner + static_cast<int64_t>(i)] =
              x[k * s_.inner + static_cast<int64_t>(i)] - most[i] - sums[i];
      return;
    }
    for (size_t i = 0; i < n; ++i) sums[i] = sums[i] == 0 ? 1 : sums[i];
    for (int64_t k = 0; k < s_.along; ++k) ExpLoopsOf<T>().divide(y + k * s_.inner, sums, n);
  }

  Shape s_;
  T least_;  // where the search for the largest begins
  bool log_;
  uint32_t operand_;
  int threads_;
};

// Exponentials are summed in small blocks, and not kept.
template <class T>
class StatisticsCall final : public AnchorCall {
 public:
  StatisticsCall(Shape shape, uint32_t operand, int threads)
      : s_(shape), operand_(operand), threads_(threads) {}
  std::string_view kernel() const override { return "softmax_statistics"; }

  absl::Status Run(const Arguments& a) const override {
    const auto* x = reinterpret_cast<const T*>(a.operands[operand_]);
    auto *top = reinterpret_cast<T*>(a.out), *log_sum = reinterpret_cast<T*>(a.more[0]);
    ForColumns(s_, threads_, [&](int64_t outer, int64_t first, int64_t columns) {
      const int64_t to = outer * s_.inner + first;
      Columns(x + outer * s_.along * s_.inner + first, top + to, log_sum + to,
              static_cast<size_t>(columns));
    });
    return absl::OkStatus();
  }

 private:
  void Columns(const T* x, T* top, T* log_sum, size_t n) const {
    constexpr auto kMax = static_cast<size_t>(ir::ReduceKind::kMax);
    alignas(64) T exponentials[kPart];
    std::fill_n(top, n, std::numeric_limits<T>::lowest());
    std::fill_n(log_sum, n, T{0});
    if (s_.inner == 1) {
      top[0] = RowLoopsOf<T>().fold[kMax](x, static_cast<size_t>(s_.along), top[0]);
      for (int64_t k = 0; k < s_.along; k += kPart)
        log_sum[0] += ExpLoopsOf<T>().exp_sum(x + k, top[0], exponentials,
                                              static_cast<size_t>(std::min(kPart, s_.along - k)));
    } else {
      for (int64_t k = 0; k < s_.along; ++k)
        RowLoopsOf<T>().combine[kMax](top, x + k * s_.inner, n);
      for (int64_t k = 0; k < s_.along; ++k)
        ExpLoopsOf<T>().exp_add(x + k * s_.inner, top, exponentials, log_sum, n);
    }
    for (size_t i = 0; i < n; ++i) {
      if (log_sum[i] == 0) top[i] = -std::numeric_limits<T>::infinity();
      log_sum[i] = std::log(log_sum[i]);
    }
  }

  Shape s_;
  uint32_t operand_;
  int threads_;
};

absl::StatusOr<MadeAnchor> MakeSoftmax(const AnchorSite& site) {
  const ir::Node& node = *site.task.anchor();
  const uint32_t operand = *site.task.OperandOf(node.in[0]);
  const View& x = site.operands[operand];
  if (x.strides != site.out.strides)
    return Unimplemented("softmax requires equal layouts of operand and result");
  const ir::Softmax& op = *node.op.As<ir::Softmax>();
  FORGE_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(x, op.axis));
  const auto make = [&]<class T>(T) -> std::unique_ptr<AnchorCall> {
    return std::make_unique<SoftmaxCall<T>>(shape, op, operand, site.settings.threads);
  };
  return MadeAnchor{x.dtype == DType::kF64 ? make(double{}) : make(float{}), node.first_out};
}

absl::StatusOr<MadeAnchor> MakeStatistics(const AnchorSite& site) {
  const ir::Node& node = *site.task.anchor();
  const uint32_t operand = *site.task.OperandOf(node.in[0]);
  const View& x = site.operands[operand];
  if (!IsDense(x) || !IsDense(site.out))
    return Unimplemented("softmax_statistics does not support permuted axes");
  FORGE_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(x, node.op.As<ir::SoftmaxStatistics>()->axis));
  const auto make = [&]<class T>(T) -> std::unique_ptr<AnchorCall> {
    return std::make_unique<StatisticsCall<T>>(shape, operand, site.settings.threads);
  };
  return MadeAnchor{x.dtype == DType::kF64 ? make(double{}) : make(float{}), node.first_out};
}

}  // namespace

const Kernel& SoftmaxKernel() {
  static const FloatKernel<ir::Softmax, true> kKernel(&MakeSoftmax);
  return kKernel;
}

const Kernel& SoftmaxStatisticsKernel() {
  static const FloatKernel<ir::SoftmaxStatistics> kKernel(&MakeStatistics);
  return kKernel;
}

}  // namespace forge::cpu
