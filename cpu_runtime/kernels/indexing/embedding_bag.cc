// SPDX-License-Identifier: Apache-2.0
// Reduces rows of a table by bag: each thread owns bags, and reads their rows in order.
#include "ir/ops/indexing/embedding_bag.h"

#include <algorithm>
#include <cmath>

#include "cpu_runtime/kernels/axis/rows_along.h"
#include "cpu_runtime/parallel.h"

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
    const std::vector<int64_t> bag = BagOfEach(a);
    const double work = static_cast<double>(s_.indices) * static_cast<double>(s_.columns);
    ParallelParts({s_.bags, 1, WorthThreads(work) ? threads_ : 1},
                  [&](int, int64_t begin, int64_t end) { Bags(a, bag, begin, end); });
    return absl::OkStatus();
  }

 private:
  // The bag of each index; -1 for those that belong to none.
  std::vector<int64_t> BagOfEach(const Arguments& a) const {
    std::vector<int64_t> bag(static_cast<size_t>(s_.indices));
    for (int64_t i = 0; i < s_.indices; ++i) {
      const int64_t of = s_.offset == kNoOperand ? i / std::max<int64_t>(s_.per_bag, 1)
                                                 : ByOffsets(a.operands[s_.offset], i);
      const bool left_out = s_.op.padding >= 0 && RowAt(a, i) == s_.op.padding;
      bag[static_cast<size_t>(i)] = left_out || of >= s_.bags ? -1 : of;
    }
    return bag;
  }
  // The last of ascending offsets that is not after the position.
  int64_t ByOffsets(const uint8_t* offsets, int64_t position) const {
    int64_t first = 0, count = s_.offsets;
    while (count > 1) {
      const int64_t half = count / 2;
      const bool after = IntegerAt(offsets, s_.offset_type, first + half) > position;
      if (!after) first += half;
      count = after ? half : count - half;
    }
    return first;
  }
  // Negative indices count from the end.
  int64_t RowAt(const Arguments& a, int64_t i) const {
    const int64_t row = IntegerAt(a.operands[s_.index], s_.index_type, i);
    return row < 0 ? row + s_.rows : row;
  }

  void Bags(const Arguments& a, const std::vector<int64_t>& bag, int64_t begin, int64_t end) const {
    const int64_t d = s_.columns;
    T* y = reinterpret_cast<T*>(a.out);
    std::fill(y + begin * d, y + end * d, T(0));
    std::vector<int64_t> sizes(static_cast<size_t>(end - begin));
    for (int64_t i = 0; i < s_.indices; ++i) {
      const int64_t of = bag[static_cast<size_t>(i)];
      if (of < begin || of >= end) continue;
      Prefetch(a, std::min(i + kAhead, s_.indices - 1));
      AddRow(a, i, y + of * d, sizes[static_cast<size_t>(of - begin)]++ == 0);
    }
    if (s_.op.kind != ReduceKind::kMean) return;
    for (int64_t of = begin; of < end; ++of) {
      const T n = static_cast<T>(std::max<int64_t>(sizes[static_cast<size_t>(of - begin)], 1));
      for (int64_t j = 0; j < d; ++j) y[of * d + j] /= n;
    }
  }
  // Rows lie anywhere in the table, so no hardware expects them.
  void Prefetch(const Arguments& a, int64_t i) const {
    constexpr int64_t kLine = 64;
    const int64_t row = RowAt(a, i), bytes = s_.columns * static_cast<int64_t>(sizeof(T));
    if (row < 0 || row >= s_.rows) return;
    const uint8_t* from = a.operands[s_.weight] + row * bytes;
    for (int64_t at = 0; at < std::min(bytes, kMostAhead); at += kLine)
      __builtin_prefetch(from + at);
  }
  // A row outside of the table is zeros.
  void AddRow(const Arguments& a, int64_t i, T* to, bool first) const {
    const int64_t row = RowAt(a, i), d = s_.columns;
    const bool inside = row >= 0 && row < s_.rows;
    const T* from = reinterpret_cast<const T*>(a.operands[s_.weight]) + (inside ? row * d : 0);
    const T factor =
        s_.scale == kNoOperand ? T(1) : reinterpret_cast<const T*>(a.operands[s_.scale])[i];
    if (s_.op.kind == ReduceKind::kMax) {
      for (int64_t j = 0; j < d; ++j) {
        const T v = inside ? from[j] : T(0);
        to[j] = first || std::isnan(v) || v > to[j] ? v : to[j];
      }
    } else if (s_.scale != kNoOperand) {
#pragma omp simd
      for (int64_t j = 0; j < d; ++j) to[j] += (inside ? from[j] : T(0)) * factor;
    } else if (inside) {
#pragma omp simd
      for (int64_t j = 0; j < d; ++j) to[j] += from[j];
    }
  }

  BagShape s_;
  int threads_;
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
  std::vector<ir::EncodingChoice> Encodings(const Task&, const Settings&) const override {
    return {};
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
