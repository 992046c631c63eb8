// SPDX-License-Identifier: Apache-2.0
// Counts elements by bin: each thread into bins of its own, which are added at the end.
#include "ir/ops/indexing/histogram.h"

#include <algorithm>
#include <cmath>

#include "cpu_runtime/kernels/axis/rows_along.h"
#include "cpu_runtime/parallel.h"

namespace forge::cpu {
namespace {

// Bins of all threads together stay within this.
constexpr int64_t kMostCounts = int64_t{1} << 20;

template <class T>
class HistogramCall final : public AnchorCall {
 public:
  HistogramCall(const ir::Histogram& op, int64_t n, uint32_t x, int threads)
      : op_(op), n_(n), x_(x), threads_(threads) {}
  std::string_view kernel() const override { return "histogram"; }
  absl::Status Run(const Arguments& a) const override {
    const auto* x = reinterpret_cast<const T*>(a.operands[x_]);
    auto* y = reinterpret_cast<int64_t*>(a.out);
    const bool many =
        WorthThreads(static_cast<double>(n_) * 4) && op_.bins * int64_t{threads_} <= kMostCounts;
    const int threads = many ? threads_ : 1;
    std::vector<std::vector<int64_t>> counts(static_cast<size_t>(threads));
    const int64_t share = (n_ + threads - 1) / threads;
    ParallelParts({threads, 1, threads}, [&](int, int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        const int64_t first = std::min(part * share, n_), last = std::min(first + share, n_);
        counts[static_cast<size_t>(part)] = Counted(x + first, last - first);
      }
    });
    std::fill(y, y + op_.bins, 0);
    for (const std::vector<int64_t>& part : counts)
      for (size_t i = 0; i < part.size(); ++i) y[i] += part[i];
    return absl::OkStatus();
  }

 private:
  // Elements outside are counted behind the last bin.
  std::vector<int64_t> Counted(const T* x, int64_t n) const {
    const T low = static_cast<T>(op_.low), high = static_cast<T>(op_.high),
            scale = static_cast<T>(op_.scale());
    const auto last = static_cast<int32_t>(op_.bins - 1);
    std::vector<int64_t> counts(static_cast<size_t>(op_.bins) + 1);
    for (int64_t i = 0; i < n; ++i) {
      const T v = x[i];
      const bool inside = v >= low && v <= high;
      const auto bin = static_cast<int32_t>((inside ? v - low : T(0)) * scale);
      ++counts[static_cast<size_t>(inside ? std::min(bin, last) : last + 1)];
    }
    counts.pop_back();
    return counts;
  }

  ir::Histogram op_;
  int64_t n_;
  uint32_t x_;
  int threads_;
};

absl::StatusOr<MadeAnchor> MakeHistogram(const AnchorSite& site) {
  const ir::Node& node = *site.task.anchor();
  const auto& op = *node.op.As<ir::Histogram>();
  const uint32_t operand = *site.task.OperandOf(node.in[0]);
  const View& x = site.operands[operand];
  if (!IsRowMajor(x) || !IsRowMajor(site.out))
    return Unimplemented("histogram does not support permuted axes");
  int64_t n = 1;
  for (const int64_t extent : x.shape) n *= extent;
  const int threads = site.settings.threads;
  if (x.dtype == DType::kF64)
    return MadeAnchor{std::make_unique<HistogramCall<double>>(op, n, operand, threads),
                      node.first_out};
  return MadeAnchor{std::make_unique<HistogramCall<float>>(op, n, operand, threads),
                    node.first_out};
}

class Histograms final : public Kernel {
 public:
  bool Knows(const Task& task) const override { return IsAnchoredBy<ir::Histogram>(task); }
  Verdict Takes(const Task& task) const override {
    if (Verdict v = TakesEpilogue(task); !v) return v;
    return Verdict::Yes("histogram");
  }
  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    return MakeAnchorProgram(task, settings, MakeHistogram);
  }
};

}  // namespace

const Kernel& HistogramKernel() {
  static const Histograms kKernel;
  return kKernel;
}

}  // namespace forge::cpu
