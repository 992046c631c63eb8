// SPDX-License-Identifier: Apache-2.0
// Index reductions: the extreme of a row, then the place of the first or last element like it.
// Columns go side by side.
#include "ir/ops/reduction/arg_reduce.h"

#include <algorithm>

#include "cpu_runtime/kernels/axis/rows_along.h"
#include "cpu_runtime/parallel.h"
#include "cpu_runtime/rows/row_loops.h"

namespace forge::cpu {
namespace {

constexpr int64_t kFewColumns = 8, kBlock = 256;

template <class T>
class ArgReduceCall final : public AnchorCall {
 public:
  ArgReduceCall(const RowsAlong& rows, const ir::ArgReduce& op, uint32_t operand, int threads)
      : rows_(rows),
        most_(op.kind == ir::ArgReduceKind::kMax),
        last_(op.select_last_index),
        operand_(operand),
        threads_(WorthThreads(2.0 * static_cast<double>(rows.elements())) ? threads : 1) {}
  std::string_view kernel() const override { return "arg_reduce"; }

  absl::Status Run(const Arguments& a) const override {
    const auto* x = reinterpret_cast<const T*>(a.operands[operand_]);
    auto* y = reinterpret_cast<int64_t*>(a.out);
    if (rows_.inner >= kFewColumns)
      most_ ? Columns<true>(x, y) : Columns<false>(x, y);
    else if (rows_.outer * rows_.inner < threads_ && rows_.inner == 1)
      for (int64_t row = 0; row < rows_.outer; ++row) y[row] = LongRow(x + row * rows_.along);
    else
      Rows(x, y);
    return absl::OkStatus();
  }

 private:
  ir::ReduceKind kind() const { return most_ ? ir::ReduceKind::kMax : ir::ReduceKind::kMin; }
  T Extreme(const T* x, int64_t n) const {
    return RowLoopsOf<T>().fold[static_cast<size_t>(kind())](x, static_cast<size_t>(n),
                                                             StartOf<T>(kind()));
  }
  static bool Same(T a, T b) { return a == b || (IsNan(a) && IsNan(b)); }

  // The place of the first or last element like `like`, which there is.
  int64_t PlaceOf(T like, const T* x, int64_t n, int64_t step) const {
    int64_t i = last_ ? n - 1 : 0;
    while (!Same(x[i * step], like)) i += last_ ? -1 : 1;
    return i;
  }

  void Rows(const T* x, int64_t* y) const {
    ParallelParts({rows_.outer * rows_.inner, 1, threads_}, [&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* row = x + i / rows_.inner * rows_.along * rows_.inner + i % rows_.inner;
        T extreme = StartOf<T>(kind());
        if (rows_.inner == 1)
          extreme = Extreme(row, rows_.along);
        else
          for (int64_t k = 0; k < rows_.along; ++k)
            RowLoopsOf<T>().combine[static_cast<size_t>(kind())](&extreme, row + k * rows_.inner,
                                                                 1);
        y[i] = PlaceOf(extreme, row, rows_.along, rows_.inner);
      }
    });
  }

  // Each thread looks at a part of the row.
  int64_t LongRow(const T* x) const {
    const int64_t n = rows_.along;
    std::vector<T> extremes(static_cast<size_t>(threads_), StartOf<T>(kind()));
    const auto begin_of = [&](int64_t p) { return n * p / threads_; };
    ParallelParts({threads_, 1, threads_}, [&](int, int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p)
        extremes[static_cast<size_t>(p)] = Extreme(x + begin_of(p), begin_of(p + 1) - begin_of(p));
    });
    const T extreme = Extreme(extremes.data(), threads_);
    int64_t p = last_ ? threads_ - 1 : 0;
    while (!Same(extremes[static_cast<size_t>(p)], extreme) || begin_of(p) == begin_of(p + 1))
      p += last_ ? -1 : 1;
    return begin_of(p) + PlaceOf(extreme, x + begin_of(p), begin_of(p + 1) - begin_of(p), 1);
  }

  template <bool kMost>
  void Columns(const T* x, int64_t* y) const {
    const int64_t blocks = (rows_.inner + kBlock - 1) / kBlock;
    ParallelParts({rows_.outer * blocks, 1, threads_}, [&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t outer = i / blocks, column = i % blocks * kBlock;
        ColumnBlock<kMost>(x + outer * rows_.along * rows_.inner + column,
                           std::min(kBlock, rows_.inner - column),
                           y + outer * rows_.inner + column);
      }
    });
  }
  template <bool kMost>
  void ColumnBlock(const T* x, int64_t n, int64_t* y) const {
    alignas(64) T best[kBlock];
    alignas(64) int32_t place[kBlock] = {};
    std::copy_n(x, n, best);
    const int last = last_;
    for (int64_t k = 1; k < rows_.along; ++k) {
      const T* row = x + k * rows_.inner;
      const auto at = static_cast<int32_t>(k);
#pragma omp simd
      for (int64_t c = 0; c < n; ++c) {
        const T v = row[c], b = best[c];
        // In integers, without branches, which the loop's vectors cannot take.
        const int ahead = kMost ? v > b : v < b, same = v == b;
        const int v_nan = IsNan(v), b_nan = IsNan(b);
        const int taken = ahead | (v_nan & (1 - b_nan)) | (last & (same | (v_nan & b_nan)));
        best[c] = taken ? v : b;
        place[c] = taken ? at : place[c];
      }
    }
    std::copy_n(place, n, y);
  }

  RowsAlong rows_;
  bool most_, last_;
  uint32_t operand_;
  int threads_;
};

absl::StatusOr<MadeAnchor> MakeArgReduce(const AnchorSite& site) {
  const ir::Node& node = *site.task.anchor();
  const auto& op = *node.op.As<ir::ArgReduce>();
  const uint32_t operand = *site.task.OperandOf(node.in[0]);
  const View& x = site.operands[operand];
  if (!IsRowMajor(site.out)) return Unimplemented("arg_reduce does not support permuted axes");
  const std::optional<int64_t> axis = op.all ? std::nullopt : std::optional(op.axis);
  FORGE_ASSIGN_OR_RETURN(const RowsAlong rows, RowsAlongOf(x, axis));
  if (rows.inner > 1 && rows.along > INT32_MAX)
    return Unimplemented("arg_reduce of columns of {} elements", rows.along);
  const auto make = [&]<class T>(T) -> std::unique_ptr<AnchorCall> {
    return std::make_unique<ArgReduceCall<T>>(rows, op, operand, site.settings.threads);
  };
  return MadeAnchor{WithOrderedType(x.dtype, make), node.first_out};
}

class ArgReduce final : public Kernel {
 public:
  bool Knows(const Task& task) const override { return IsAnchoredBy<ir::ArgReduce>(task); }
  Verdict Takes(const Task& task) const override {
    if (Verdict v = TakesEpilogue(task); !v) return v;
    return Verdict::Yes("arg_reduce");
  }
  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    return MakeAnchorProgram(task, settings, MakeArgReduce);
  }
};

}  // namespace

const Kernel& ArgReduceKernel() {
  static const ArgReduce kKernel;
  return kKernel;
}

}  // namespace forge::cpu
