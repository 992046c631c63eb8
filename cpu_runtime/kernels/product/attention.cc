// SPDX-License-Identifier: Apache-2.0
// Attention in tiles: the scores of some rows and keys stay in a cache, while each row keeps its
// largest score, the sum of its exponentials and its result so far.  source: Dao and others,
// "FlashAttention", 2022
#include "ir/ops/product/attention.h"

#include <map>

#include "cpu_runtime/kernels/product/attention_scores.h"
#include "cpu_runtime/parallel.h"
#include "cpu_runtime/rows/row_loops.h"

namespace forge::cpu {
namespace {

// The products of a tile of so many rows and keys.
struct TileCalls {
  TileProduct scores, sums;
};

class AttentionCall final : public AnchorCall {
  static constexpr int64_t kRows = AttentionShape::kRows, kKeys = AttentionShape::kKeys;

 public:
  AttentionCall(AttentionShape shape, Matrices y, int threads)
      : s_(std::move(shape)), y_(std::move(y)), threads_(threads) {}
  std::string_view kernel() const override { return "attention"; }
  uint64_t scratch_bytes() const override {
    return static_cast<uint64_t>(threads_) * ScratchOfThread();
  }

  // Makes the products of whole tiles and of those at the ends.  Throws dnnl::error.
  void Prepare() {
    if (s_.keys == 0 || OneRow()) return;
    const ThreadScope alone(1);  // each tile is one thread's
    dnnl::post_ops added;
    added.append_sum();
    for (const int64_t rows : {std::min(kRows, s_.rows), s_.rows % kRows})
      for (const int64_t keys : {std::min(kKeys, s_.keys), s_.keys % kKeys}) {
        if (rows == 0 || keys == 0 || calls_.contains({rows, keys})) continue;
        TileProduct scores = s_.Scores(rows, keys, scratchpad_);
        TileProduct sums({rows, keys, kKeys}, {keys, s_.width, s_.v.row, s_.v.column},
                         {rows, s_.width, y_.row, y_.column}, added, scratchpad_);
        calls_.emplace(std::pair(rows, keys), TileCalls{std::move(scores), std::move(sums)});
      }
  }

  absl::Status Run(const Arguments& a) const override {
    const int64_t tiles = s_.matrices * s_.tiles();
    std::vector<absl::Status> failed(static_cast<size_t>(threads_));
    ParallelShares({tiles, 1, threads_}, [&](int thread, int64_t begin, int64_t end) {
      // Later rows see more keys, and come first.
      for (int64_t i = begin; i < end; ++i)
        failed[static_cast<size_t>(thread)].Update(Tile(a, tiles - 1 - i, thread));
    });
    for (const absl::Status& status : failed) FORGE_RETURN_IF_ERROR(status);
    return absl::OkStatus();
  }

 private:
  static constexpr auto kMax = static_cast<size_t>(ir::ReduceKind::kMax);

  // Rows of a matrix, and what a thread computes them in.
  struct Site {
    int64_t begin = 0, rows = 0;
    float *q = nullptr, *k = nullptr, *v = nullptr, *y = nullptr;  // oneDNN's are not const
    float* log_sums = nullptr;                                     // null: not asked for
    const uint8_t* mask = nullptr;
    float *scores = nullptr, *most = nullptr, *sum = nullptr;
    void* scratchpad = nullptr;
  };

  // The library's product of one row with keys copies the keys first, which takes most of the time.
  bool OneRow() const {
    return s_.rows == 1 && s_.q.column == 1 && s_.k.column == 1 && s_.v.column == 1 &&
           s_.softcap == 0;
  }

  uint64_t ScratchOfThread() const {
    return (kRows * kKeys + 2 * kRows) * sizeof(float) + (scratchpad_ + 63) / 64 * 64;
  }

  absl::Status Tile(const Arguments& a, int64_t tile, int thread) const {
    const int64_t matrix = tile / s_.tiles();
    auto* scratch = a.scratch + static_cast<uint64_t>(thread) * ScratchOfThread();
    auto* scores = reinterpret_cast<float*>(scratch);
    Site site{.begin = tile % s_.tiles() * kRows,
              .q = s_.At(s_.q, a, matrix),
              .k = s_.At(s_.k, a, matrix),
              .v = s_.At(s_.v, a, matrix),
              .y = reinterpret_cast<float*>(a.out) + s_.OffsetOf(y_, matrix),
              .mask = s_.MaskAt(a, matrix),
              .scores = scores,
              .most = scores + kRows * kKeys,
              .sum = scores + kRows * kKeys + kRows,
              .scratchpad = scores + kRows * kKeys + 2 * kRows};
    site.rows = std::min(kRows, s_.rows - site.begin);
    site.q += site.begin * s_.q.row;
    site.y += site.begin * y_.row;
    if (!a.more.empty())
      site.log_sums = reinterpret_cast<float*>(a.more[0]) + matrix * s_.rows + site.begin;
    return Rows(site);
  }

  absl::Status Rows(const Site& site) const {
    std::fill_n(site.most, site.rows, std::numeric_limits<float>::lowest());
    std::fill_n(site.sum, site.rows, 0.0f);
    for (int64_t r = 0; r < site.rows; ++r) std::fill_n(site.y + r * y_.row, s_.width, 0.0f);
    const auto [low, high] = s_.KeysOf(site.begin, site.begin + site.rows);
    for (int64_t key = low / kKeys * kKeys; key < high; key += kKeys)
      FORGE_RETURN_IF_ERROR(Keys(site, key));
    for (int64_t r = 0; r < site.rows; ++r) {
      const float sum = site.sum[r];
      if (sum != 0)
        ExpLoopsOf<float>().divide_all(site.y + r * y_.row, sum, static_cast<size_t>(s_.width));
      if (site.log_sums != nullptr)
        site.log_sums[r] =
            sum != 0 ? site.most[r] + std::log(sum) : std::numeric_limits<float>::infinity();
    }
    return absl::OkStatus();
  }

  // Adds what the keys from `key` on give.
  absl::Status Keys(const Site& site, int64_t key) const {
    const int64_t keys = std::min(kKeys, s_.keys - key);
    if (OneRow()) {
      KeysOfOneRow(site, key, keys);
      return absl::OkStatus();
    }
    const TileCalls& calls = calls_.at({site.rows, keys});
    if (s_.head == 0) std::fill_n(site.scores, site.rows * kKeys, 0.0f);
    FORGE_RETURN_IF_ERROR(
        calls.scores.Run(site.q, site.k + key * s_.k.row, site.scores, site.scratchpad));
    for (int64_t r = 0; r < site.rows; ++r) Row(site, r, key, keys);
    return calls.sums.Run(site.scores, site.v + key * s_.v.row, site.y, site.scratchpad);
  }

  void KeysOfOneRow(const Site& site, int64_t key, int64_t keys) const {
    const auto n = static_cast<size_t>(keys);
    RowProductLoops().dots({.x = site.q,
                            .m = site.k + key * s_.k.row,
                            .stride = s_.k.row,
                            .rows = n,
                            .n = static_cast<size_t>(s_.head),
                            .out = site.scores},
                           s_.scale);
    Row(site, 0, key, keys);
    RowProductLoops().add_rows({.x = site.scores,
                                .m = site.v + key * s_.v.row,
                                .stride = s_.v.row,
                                .rows = n,
                                .n = static_cast<size_t>(s_.width),
                                .out = site.y});
  }

  // Replaces scores by their exponentials, and makes the row's result so far one of the same shift.
  void Row(const Site& site, int64_t r, int64_t key, int64_t keys) const {
    float* x = site.scores + r * kKeys;
    const auto n = static_cast<size_t>(keys);
    s_.Mask(site.mask, site.begin + r, key, keys, x);
    const float before = site.most[r], most = RowLoopsOf<float>().fold[kMax](x, n, before);
    const float sum = ExpLoopsOf<float>().exp_sum(x, most, x, n);
    const float factor = before == most ? 1 : std::exp(before - most);
    site.most[r] = most;
    site.sum[r] = site.sum[r] * factor + sum;
    if (factor != 1)
      for (int64_t i = 0; i < s_.width; ++i) site.y[r * y_.row + i] *= factor;
  }

  AttentionShape s_;
  Matrices y_;
  int threads_;
  size_t scratchpad_ = 0;                                   // bytes
  std::map<std::pair<int64_t, int64_t>, TileCalls> calls_;  // by rows and keys
};

absl::StatusOr<MadeAnchor> MakeAttention(const AnchorSite& site) {
  const ir::Node& node = *site.task.anchor();
  if (!IsDense(site.out)) return Unimplemented("attention has no kernel for permuted axes");
  AttentionShape s = AttentionShapeOf(site, *node.op.As<ir::Attention>(), 3, site.out.shape);
  const double work = 2.0 * static_cast<double>(s.matrices) * static_cast<double>(s.rows) *
                      static_cast<double>(s.keys) * static_cast<double>(s.head + s.width);
  const int threads = WorthThreads(work / 8) ? site.settings.threads : 1;
  auto call = std::make_unique<AttentionCall>(std::move(s), FactorOf(site.out, 0), threads);
  FORGE_RETURN_IF_ERROR(Guarded("attention", [&] { call->Prepare(); }));
  return MadeAnchor{std::move(call), node.first_out};
}

class Attentions final : public Kernel {
 public:
  bool Knows(const Task& task) const override { return IsAnchoredBy<ir::Attention>(task); }
  Verdict Takes(const Task& task) const override {
    if (Verdict v = TakesEpilogue(task); !v) return v;
    if (task.body().type(task.anchor()->first_out).dtype() == DType::kF64)
      return Verdict::No("attention has no kernel for f64");
    return Verdict::Yes("attention");
  }
  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    return MakeAnchorProgram(task, settings, MakeAttention);
  }
};

}  // namespace

const Kernel& AttentionKernel() {
  static const Attentions kKernel;
  return kKernel;
}

}  // namespace forge::cpu
