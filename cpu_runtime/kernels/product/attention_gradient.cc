// SPDX-License-Identifier: Apache-2.0
// The gradients of attention in tiles: the probabilities of some rows and keys, and their
// gradients, stay in a cache. A thread has the keys of a matrix to itself, with all rows that read
// them, so the order of sums does not depend on threads.  source: Dao and others,
// "FlashAttention", 2022
#include "ir/ops/product/attention_gradient.h"

#include <map>

#include "cpu_runtime/kernels/product/attention_scores.h"
#include "cpu_runtime/parallel.h"
#include "cpu_runtime/rows/row_loops.h"

namespace forge::cpu {
namespace {

using Operand = ir::AttentionGradient::Operand;

// The products of a tile of so many rows and keys.
struct GradientTileCalls {
  TileProduct scores, dp, dq, dk, dv;
};

// What is read and written beside q, k and v.
struct Others {
  Matrices log_sum, dy, delta;
  Matrices dq, dk, dv;  // dense; the operand counts for nothing
};

class AttentionGradientCall final : public AnchorCall {
  static constexpr int64_t kRows = AttentionShape::kRows, kKeys = AttentionShape::kKeys;

 public:
  AttentionGradientCall(AttentionShape shape, Others others, int threads)
      : s_(std::move(shape)), o_(std::move(others)), threads_(threads) {
    std::map<int64_t, size_t> group_of;  // by place of dk, or of dv where keys have no elements
    const Matrices& of_keys = s_.head > 0 ? o_.dk : o_.dv;
    for (int64_t matrix = 0; matrix < s_.matrices; ++matrix) {
      const auto [at, added] = group_of.try_emplace(s_.OffsetOf(of_keys, matrix), groups_.size());
      if (added) groups_.emplace_back();
      groups_[at->second].push_back(matrix);
    }
  }
  std::string_view kernel() const override { return "attention_gradient"; }
  uint64_t scratch_bytes() const override {
    return static_cast<uint64_t>(threads_) * ScratchOfThread();
  }

  // Makes the products of whole tiles and of those at the ends.  Throws dnnl::error.
  void Prepare() {
    const ThreadScope alone(1);  // each tile is one thread's
    for (const int64_t rows : {std::min(kRows, s_.rows), s_.rows % kRows})
      for (const int64_t keys : {std::min(kKeys, s_.keys), s_.keys % kKeys})
        if (rows > 0 && keys > 0 && !calls_.contains({rows, keys}))
          calls_.emplace(std::pair(rows, keys), CallsOf(rows, keys));
  }

  absl::Status Run(const Arguments& a) const override {
    const auto clear = [](uint8_t* at, const Matrices& m) {
      std::fill_n(reinterpret_cast<float*>(at), m.view.elements(), 0.0f);
    };
    clear(a.out, o_.dq), clear(a.more[0], o_.dk), clear(a.more[1], o_.dv);
    std::vector<absl::Status> failed(static_cast<size_t>(threads_));
    ParallelShares({static_cast<int64_t>(groups_.size()), 1, threads_},
                   [&](int thread, int64_t begin, int64_t end) {
                     absl::Status& status = failed[static_cast<size_t>(thread)];
                     for (int64_t i = begin; i < end; ++i)
                       for (const int64_t matrix : groups_[static_cast<size_t>(i)])
                         status.Update(Matrix(a, matrix, thread));
                   });
    for (const absl::Status& status : failed) FORGE_RETURN_IF_ERROR(status);
    return absl::OkStatus();
  }

 private:
  // The elements of a matrix, and what a thread computes in.
  struct Site {
    float *q = nullptr, *k = nullptr, *v = nullptr, *dy = nullptr;  // oneDNN's are not const
    const float *log_sum = nullptr, *delta = nullptr;
    const uint8_t* mask = nullptr;
    float *dq = nullptr, *dk = nullptr, *dv = nullptr;
    float *p = nullptr, *dp = nullptr;  // of a tile
    void* scratchpad = nullptr;
  };

  GradientTileCalls CallsOf(int64_t rows, int64_t keys) {
    using M = TileProduct::Matrix;
    dnnl::post_ops none, added;
    added.append_sum();
    const auto of = [](const Matrices& m, int64_t n, int64_t columns) {
      return M{n, columns, m.row, m.column};
    };
    const auto flipped = [](const M& m) { return M{m.columns, m.rows, m.column, m.row}; };
    const M tile{rows, keys, kKeys}, q = of(s_.q, rows, s_.head), k = of(s_.k, keys, s_.head),
                                     v = of(s_.v, keys, s_.width), dy = of(o_.dy, rows, s_.width);
    const M dq = of(o_.dq, rows, s_.head), dk = of(o_.dk, keys, s_.head),
            dv = of(o_.dv, keys, s_.width);
    return {s_.Scores(rows, keys, scratchpad_),
            {dy, flipped(v), tile, none, scratchpad_},
            {tile, k, dq, added, scratchpad_},
            {flipped(tile), q, dk, added, scratchpad_},
            {flipped(tile), dy, dv, added, scratchpad_}};
  }

  static constexpr int64_t kTile = kRows * kKeys;  // elements
  uint64_t ScratchOfThread() const {
    return 2 * kTile * sizeof(float) + (scratchpad_ + 63) / 64 * 64;
  }

  absl::Status Matrix(const Arguments& a, int64_t matrix, int thread) const {
    auto* scratch =
        reinterpret_cast<float*>(a.scratch + static_cast<uint64_t>(thread) * ScratchOfThread());
    const auto result = [&](uint8_t* at, const Matrices& m) {
      return reinterpret_cast<float*>(at) + s_.OffsetOf(m, matrix);
    };
    const Site site{.q = s_.At(s_.q, a, matrix),
                    .k = s_.At(s_.k, a, matrix),
                    .v = s_.At(s_.v, a, matrix),
                    .dy = s_.At(o_.dy, a, matrix),
                    .log_sum = s_.At(o_.log_sum, a, matrix),
                    .delta = s_.At(o_.delta, a, matrix),
                    .mask = s_.MaskAt(a, matrix),
                    .dq = result(a.out, o_.dq),
                    .dk = result(a.more[0], o_.dk),
                    .dv = result(a.more[1], o_.dv),
                    .p = scratch,
                    .dp = scratch + kTile,
                    .scratchpad = scratch + 2 * kTile};
    for (int64_t key = 0; key < s_.keys; key += kKeys)
      for (int64_t row = 0; row < s_.rows; row += kRows) {
        const int64_t end = std::min(row + kRows, s_.rows);
        const auto [low, high] = s_.KeysOf(row, end);
        if (low < key + kKeys && high > key) FORGE_RETURN_IF_ERROR(Tile(site, row, end - row, key));
      }
    return absl::OkStatus();
  }

  absl::Status Tile(const Site& site, int64_t row, int64_t rows, int64_t key) const {
    const int64_t keys = std::min(kKeys, s_.keys - key);
    const GradientTileCalls& calls = calls_.at({rows, keys});
    float *q = site.q + row * s_.q.row, *k = site.k + key * s_.k.row, *v = site.v + key * s_.v.row,
          *dy = site.dy + row * o_.dy.row;
    if (s_.head == 0) std::fill_n(site.p, rows * kKeys, 0.0f);
    if (s_.width == 0) std::fill_n(site.dp, rows * kKeys, 0.0f);
    FORGE_RETURN_IF_ERROR(calls.scores.Run(q, k, site.p, site.scratchpad));
    FORGE_RETURN_IF_ERROR(calls.dp.Run(dy, v, site.dp, site.scratchpad));
    for (int64_t r = 0; r < rows; ++r) Row(site, row + r, key, keys, r * kKeys);
    float *dq = site.dq + row * o_.dq.row, *dk = site.dk + key * o_.dk.row,
          *dv = site.dv + key * o_.dv.row;
    FORGE_RETURN_IF_ERROR(calls.dv.Run(site.p, dy, dv, site.scratchpad));
    FORGE_RETURN_IF_ERROR(calls.dk.Run(site.dp, q, dk, site.scratchpad));
    return calls.dq.Run(site.dp, k, dq, site.scratchpad);
  }

  // Makes probabilities of the scores of a row, and of the gradients of those the gradients of what
  // q and k gave.
  void Row(const Site& site, int64_t row, int64_t key, int64_t keys, int64_t at) const {
    float *x = site.p + at, *dp = site.dp + at;
    const float delta = site.delta[row * o_.delta.row], scale = s_.scale;
    if (s_.softcap != 0) {
      const float by = 1 / s_.softcap;
      for (int64_t i = 0; i < keys; ++i) {
        const float t = x[i] * by;
        dp[i] = (dp[i] - delta) * (1 - t * t) * scale;
      }
    } else {
      for (int64_t i = 0; i < keys; ++i) dp[i] = (dp[i] - delta) * scale;
    }
    s_.Mask(site.mask, row, key, keys, x);
    ExpLoopsOf<float>().exp_sum(x, site.log_sum[row * o_.log_sum.row], x,
                                static_cast<size_t>(keys));
    for (int64_t i = 0; i < keys; ++i) dp[i] *= x[i];
  }

  AttentionShape s_;
  Others o_;
  int threads_;
  std::vector<std::vector<int64_t>> groups_;                        // matrices that share keys
  size_t scratchpad_ = 0;                                           // bytes
  std::map<std::pair<int64_t, int64_t>, GradientTileCalls> calls_;  // by rows and keys
};

absl::StatusOr<MadeAnchor> MakeAttentionGradient(const AnchorSite& site) {
  const ir::Node& node = *site.task.anchor();
  for (const View* v : {&site.out, &site.more[0], &site.more[1]})
    if (!IsDense(*v)) return Unimplemented("attention_gradient has no kernel for permuted axes");
  AttentionShape s = AttentionShapeOf(site, node.op.As<ir::AttentionGradient>()->forward(),
                                      Operand::kMask, site.out.shape);
  const auto operand = [&](Operand which, auto of) {
    const uint32_t i = *site.task.OperandOf(node.in[which]);
    return of(site.operands[i], i);
  };
  Others others{operand(Operand::kLogSum, MatricesOf),
                operand(Operand::kDy, FactorOf),
                operand(Operand::kDelta, MatricesOf),
                FactorOf(site.out, 0),
                FactorOf(site.more[0], 0),
                FactorOf(site.more[1], 0)};
  const double work = 2.0 * static_cast<double>(s.matrices) * static_cast<double>(s.rows) *
                      static_cast<double>(s.keys) * static_cast<double>(3 * s.head + 2 * s.width);
  const int threads = WorthThreads(work / 8) ? site.settings.threads : 1;
  auto call = std::make_unique<AttentionGradientCall>(std::move(s), std::move(others), threads);
  FORGE_RETURN_IF_ERROR(Guarded("attention_gradient", [&] { call->Prepare(); }));
  return MadeAnchor{std::move(call), node.first_out};
}

class AttentionGradients final : public Kernel {
 public:
  bool Knows(const Task& task) const override { return IsAnchoredBy<ir::AttentionGradient>(task); }
  Verdict Takes(const Task& task) const override {
    if (Verdict v = TakesEpilogue(task); !v) return v;
    if (task.body().type(task.anchor()->first_out).dtype() == DType::kF64)
      return Verdict::No("attention_gradient has no kernel for f64");
    return Verdict::Yes("attention_gradient");
  }
  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    return MakeAnchorProgram(task, settings, MakeAttentionGradient);
  }
};

}  // namespace

const Kernel& AttentionGradientKernel() {
  static const AttentionGradients kKernel;
  return kKernel;
}

}  // namespace forge::cpu
