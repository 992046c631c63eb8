// SPDX-License-Identifier: Apache-2.0
// Reduces rows of a table by bag: each thread owns bags, and reads their rows in order.
#include "ir/ops/indexing/embedding_bag.h"

#include <algorithm>
#include <cmath>

#include "cpu_runtime/kernels/axis/rows_along.h"
#include "cpu_runtime/parallel.h"
#include "cpu_runtime/rows/row_loops.h"

namespace forge::cpu {
namespace {

using ir::ReduceKind;

// Rows that are fetched ahead of the one that is added, and bytes of each.
constexpr int64_t kAhead = 16, kMostAhead = 1024;
constexpr uint32_t kNoOperand = UINT32_MAX;

struct BagShape {
  ir::EmbeddingBag op;
  int64_t rows = 0, columns = 0, indices = 0, bags = 0, offsets = 0, per_bag = 0;
  uint32_t weight = 0, index = 0, offset = kNoOperand, scale = kNoOperand;
  DType index_type = DType::kI64, offset_type = DType::kI64;
};

int64_t IntegerAt(const uint8_t* data, DType t, int64_t i) {
  return t == DType::kI32 ? reinterpret_cast<const int32_t*>(data)[i]
                          : reinterpret_cast<const int64_t*>(data)[i];
}

template <class T>
class BagCall final : public AnchorCall {
 public:
  BagCall(const BagShape& shape, int threads) : s_(shape), threads_(threads) {}
  std::string_view kernel() const override { return "embedding_bag"; }
  absl::Status Run(const Arguments& a) const override {
    const double work = static_cast<double>(s_.indices) * static_cast<double>(s_.columns);
    ParallelParts({s_.bags, 1, WorthThreads(work) ? threads_ : 1},
                  [&](int, int64_t begin, int64_t end) {
                    for (int64_t bag = begin; bag < end; ++bag) Bag(a, bag);
                  });
    return absl::OkStatus();
  }

 private:
  // The first index of a bag; those before the first offset belong to bag 0.
  int64_t Begin(const Arguments& a, int64_t bag) const {
    if (s_.offset == kNoOperand) return bag * s_.per_bag;
    if (bag == 0) return 0;
    if (bag == s_.offsets) return s_.indices;
    const int64_t at = IntegerAt(a.operands[s_.offset], s_.offset_type, bag);
    return std::clamp<int64_t>(at, 0, s_.indices);
  }
  // Negative indices count from the end.
  int64_t RowAt(const Arguments& a, int64_t i) const {
    const int64_t row = IntegerAt(a.operands[s_.index], s_.index_type, i);
    return row < 0 ? row + s_.rows : row;
  }

  void Bag(const Arguments& a, int64_t bag) const {
    const int64_t d = s_.columns, end = Begin(a, bag + 1);
    T* y = reinterpret_cast<T*>(a.out) + bag * d;
    std::fill_n(y, d, T(0));
    int64_t size = 0;
    for (int64_t i = Begin(a, bag); i < end; ++i) {
      Prefetch(a, std::min(i + kAhead, s_.indices - 1));
      const int64_t row = RowAt(a, i);
      if (s_.op.padding < 0 || row != s_.op.padding) AddRow(a, i, row, y, size++ == 0);
    }
    if (s_.op.kind != ReduceKind::kMean || size == 0) return;
    for (int64_t j = 0; j < d; ++j) y[j] /= static_cast<T>(size);
  }
  // Rows lie anywhere in the table, so no hardware expects them. Inline: GCC takes calls that only
  // prefetch for calls that do nothing.
  [[gnu::always_inline]] void Prefetch(const Arguments& a, int64_t i) const {
    constexpr int64_t kLine = 64;
    const int64_t row = RowAt(a, i), bytes = s_.columns * static_cast<int64_t>(sizeof(T));
    if (row < 0 || row >= s_.rows) return;
    const uint8_t* from = a.operands[s_.weight] + row * bytes;
    for (int64_t at = 0; at < std::min(bytes, kMostAhead); at += kLine)
      __builtin_prefetch(from + at);
  }
  // A row outside of the table is zeros.
  void AddRow(const Arguments& a, int64_t i, int64_t row, T* to, bool first) const {
    const int64_t d = s_.columns;
    const bool is_max = s_.op.kind == ReduceKind::kMax;
    if (row < 0 || row >= s_.rows) {
      for (int64_t j = 0; j < d; ++j) to[j] = is_max && (first || to[j] < T(0)) ? T(0) : to[j];
      return;
    }
    const T* from = reinterpret_cast<const T*>(a.operands[s_.weight]) + row * d;
    if (s_.scale != kNoOperand && !is_max) {
      const T factor = reinterpret_cast<const T*>(a.operands[s_.scale])[i];
#pragma omp simd
      for (int64_t j = 0; j < d; ++j) to[j] += from[j] * factor;
    } else if (first) {
      std::copy_n(from, d, to);
    } else {
      loops_.combine[static_cast<size_t>(s_.op.kind)](to, from, static_cast<size_t>(d));
    }
  }

  BagShape s_;
  int threads_;
  const RowLoops<T>& loops_ = RowLoopsOf<T>();
};

absl::StatusOr<MadeAnchor> MakeBag(const AnchorSite& site) {
  const ir::Node& node = *site.task.anchor();
  BagShape s{.op = *node.op.As<ir::EmbeddingBag>()};
  const auto operand = [&](size_t i) {
    const bool given = i < node.in.size() && node.in[i] != ir::kAbsent;
    return given ? uint32_t{*site.task.OperandOf(node.in[i])} : kNoOperand;
  };
  s.weight = operand(0), s.index = operand(1), s.offset = operand(2), s.scale = operand(3);
  for (const uint32_t i : {s.weight, s.index, s.offset, s.scale})
    if (i != kNoOperand && !IsRowMajor(site.operands[i]))
      return Unimplemented("embedding_bag does not support permuted axes");
  const View &weight = site.operands[s.weight], &index = site.operands[s.index];
  s.rows = weight.shape[0], s.columns = weight.shape[1], s.bags = site.out.shape[0];
  s.indices = 1;
  for (const int64_t extent : index.shape) s.indices *= extent;
  s.per_bag = index.shape.size() > 1 ? index.shape[1] : 0;
  s.index_type = index.dtype;
  if (s.offset != kNoOperand) {
    s.offset_type = site.operands[s.offset].dtype;
    s.offsets = site.operands[s.offset].shape[0];
  }
  const int threads = site.settings.threads;
  if (site.out.dtype == DType::kF64)
    return MadeAnchor{std::make_unique<BagCall<double>>(s, threads), node.first_out};
  return MadeAnchor{std::make_unique<BagCall<float>>(s, threads), node.first_out};
}

class BagReductions final : public Kernel {
 public:
  bool Knows(const Task& task) const override { return IsAnchoredBy<ir::EmbeddingBag>(task); }
  Verdict Takes(const Task& task) const override {
    if (Verdict v = TakesEpilogue(task); !v) return v;
    const DType t = task.body().type(task.anchor()->in[0]).dtype();
    // The whole table would be widened at each run.
    if (t != DType::kF32 && t != DType::kF64)
      return Verdict::No(fmt::format("a table of {}", Name(t)));
    return Verdict::Yes("embedding_bag");
  }
  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    return MakeAnchorProgram(task, settings, MakeBag);
  }
};

}  // namespace

const Kernel& EmbeddingBagKernel() {
  static const BagReductions kKernel;
  return kKernel;
}

}  // namespace forge::cpu
