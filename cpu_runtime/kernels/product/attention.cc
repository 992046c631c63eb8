// SPDX-License-Identifier: Apache-2.0
// Attention in tiles: the scores of some rows and keys stay in a cache, while each row keeps its
// largest score, the sum of its exponentials and its result so far.  source: Dao and others,
// "FlashAttention", 2022
#include "ir/ops/product/attention.h"

#include <cmath>
#include <limits>
#include <map>

#include "cpu_runtime/kernels/kernel.h"
#include "cpu_runtime/onednn/library.h"
#include "cpu_runtime/parallel.h"
#include "cpu_runtime/rows/row_loops.h"

namespace forge::cpu {
namespace {

// Rows and keys of a tile, whose scores take 128 KiB.
constexpr int64_t kRows = 128, kKeys = 256;
constexpr float kNone = -std::numeric_limits<float>::infinity();

// An operand as matrices, and the strides within one; a stride of 0 repeats.
struct Matrices {
  uint32_t operand = 0;
  View view;
  int64_t row = 0, column = 0;
};

struct Shape {
  int64_t matrices = 1, rows = 0, keys = 0, head = 0, width = 0;
  Matrices q, k, v, y;
  std::optional<Matrices> mask;
  bool bool_mask = false;
  std::optional<int64_t> first, last;  // row i sees keys from i + first to i + last
  float scale = 1, softcap = 0;
  int threads = 1;

  // The library's product of one row with keys copies the keys first, which takes most of the time.
  bool OneRow() const {
    return rows == 1 && q.column == 1 && k.column == 1 && v.column == 1 && softcap == 0;
  }
  int64_t tiles() const { return (rows + kRows - 1) / kRows; }
  int64_t OffsetOf(const Matrices& m, int64_t matrix) const {
    return ElementsBefore(m.view, y.view.shape, matrix);
  }
};

// The products of a tile of so many rows and keys.
struct TileCalls {
  std::unique_ptr<PrimitiveCall> scores, sums;
};

dnnl::memory::desc Desc(int64_t rows, int64_t columns, int64_t row, int64_t column) {
  return {{rows, columns}, dnnl::memory::data_type::f32, {row, column}};
}

// Throws dnnl::error.
std::unique_ptr<PrimitiveCall> ProductCall(const dnnl::memory::desc& a, const dnnl::memory::desc& b,
                                           const dnnl::memory::desc& y,
                                           const dnnl::post_ops& post_ops, size_t& scratchpad) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_post_ops(post_ops);
  const dnnl::matmul::primitive_desc pd(Engine(), a, b, y, attributes);
  scratchpad = std::max(scratchpad, pd.scratchpad_desc().get_size());
  return std::make_unique<PrimitiveCall>(
      dnnl::matmul(pd),
      std::vector<PrimitiveCall::Argument>{{DNNL_ARG_SRC, a},
                                           {DNNL_ARG_WEIGHTS, b},
                                           {DNNL_ARG_DST, y},
                                           {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}});
}

class AttentionCall final : public AnchorCall {
 public:
  explicit AttentionCall(Shape shape) : s_(std::move(shape)) {}
  std::string_view kernel() const override { return "attention"; }
  uint64_t scratch_bytes() const override {
    return static_cast<uint64_t>(s_.threads) * ScratchOfThread();
  }

  // Makes the products of whole tiles and of those at the ends.  Throws dnnl::error.
  void Prepare() {
    if (s_.keys == 0 || s_.OneRow()) return;
    const ThreadScope alone(1);  // each tile is one thread's
    dnnl::post_ops scaled, added;
    added.append_sum();
    if (s_.softcap != 0) {
      scaled.append_eltwise(dnnl::algorithm::eltwise_linear, s_.scale / s_.softcap, 0);
      scaled.append_eltwise(dnnl::algorithm::eltwise_tanh, 0, 0);
      scaled.append_eltwise(dnnl::algorithm::eltwise_linear, s_.softcap, 0);
    } else if (s_.scale != 1) {
      scaled.append_eltwise(dnnl::algorithm::eltwise_linear, s_.scale, 0);
    }
    for (const int64_t rows : {std::min(kRows, s_.rows), s_.rows % kRows})
      for (const int64_t keys : {std::min(kKeys, s_.keys), s_.keys % kKeys}) {
        if (rows == 0 || keys == 0 || calls_.contains({rows, keys})) continue;
        const dnnl::memory::desc scores = Desc(rows, keys, kKeys, 1);
        TileCalls& calls = calls_[{rows, keys}];
        if (s_.head > 0)  // else each score is 0
          calls.scores =
              ProductCall(Desc(rows, s_.head, s_.q.row, s_.q.column),
                          Desc(s_.head, keys, s_.k.column, s_.k.row), scores, scaled, scratchpad_);
        calls.sums = ProductCall(scores, Desc(keys, s_.width, s_.v.row, s_.v.column),
                                 Desc(rows, s_.width, s_.y.row, s_.y.column), added, scratchpad_);
      }
  }

  absl::Status Run(const Arguments& a) const override {
    const int64_t tiles = s_.matrices * s_.tiles();
    std::vector<absl::Status> failed(static_cast<size_t>(s_.threads));
    ParallelShares({tiles, 1, s_.threads}, [&](int thread, int64_t begin, int64_t end) {
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
    const uint8_t* mask = nullptr;
    float *scores = nullptr, *most = nullptr, *sum = nullptr;
    void* scratchpad = nullptr;
  };

  uint64_t ScratchOfThread() const {
    return (kRows * kKeys + 2 * kRows) * sizeof(float) + (scratchpad_ + 63) / 64 * 64;
  }

  absl::Status Tile(const Arguments& a, int64_t tile, int thread) const {
    const int64_t matrix = tile / s_.tiles();
    const auto at = [&](const Matrices& m) {
      return reinterpret_cast<float*>(a.operands[m.operand]) + s_.OffsetOf(m, matrix);
    };
    auto* scratch = a.scratch + static_cast<uint64_t>(thread) * ScratchOfThread();
    auto* scores = reinterpret_cast<float*>(scratch);
    Site site{.begin = tile % s_.tiles() * kRows,
              .q = at(s_.q),
              .k = at(s_.k),
              .v = at(s_.v),
              .y = reinterpret_cast<float*>(a.out) + s_.OffsetOf(s_.y, matrix),
              .scores = scores,
              .most = scores + kRows * kKeys,
              .sum = scores + kRows * kKeys + kRows,
              .scratchpad = scores + kRows * kKeys + 2 * kRows};
    site.rows = std::min(kRows, s_.rows - site.begin);
    site.q += site.begin * s_.q.row;
    site.y += site.begin * s_.y.row;
    if (s_.mask)
      site.mask = a.operands[s_.mask->operand] +
                  s_.OffsetOf(*s_.mask, matrix) * (s_.bool_mask ? 1 : int64_t{sizeof(float)});
    return Rows(site);
  }

  absl::Status Rows(const Site& site) const {
    std::fill_n(site.most, site.rows, std::numeric_limits<float>::lowest());
    std::fill_n(site.sum, site.rows, 0.0f);
    for (int64_t r = 0; r < site.rows; ++r) std::fill_n(site.y + r * s_.y.row, s_.width, 0.0f);
    const int64_t low = s_.first ? std::max<int64_t>(site.begin + *s_.first, 0) : 0;
    const int64_t high = s_.last ? std::min(site.begin + site.rows + *s_.last, s_.keys) : s_.keys;
    for (int64_t key = low / kKeys * kKeys; key < high; key += kKeys)
      FORGE_RETURN_IF_ERROR(Keys(site, key));
    for (int64_t r = 0; r < site.rows; ++r)
      if (site.sum[r] != 0)
        ExpLoopsOf<float>().divide_all(site.y + r * s_.y.row, site.sum[r],
                                       static_cast<size_t>(s_.width));
    return absl::OkStatus();
  }

  // Adds what the keys from `key` on give.
  absl::Status Keys(const Site& site, int64_t key) const {
    const int64_t keys = std::min(kKeys, s_.keys - key);
    if (s_.OneRow()) {
      KeysOfOneRow(site, key, keys);
      return absl::OkStatus();
    }
    const TileCalls& calls = calls_.at({site.rows, keys});
    if (calls.scores) {
      void* products[] = {site.q, site.k + key * s_.k.row, site.scores, site.scratchpad};
      FORGE_RETURN_IF_ERROR(calls.scores->Run(products));
    } else {
      std::fill_n(site.scores, site.rows * kKeys, 0.0f);
    }
    for (int64_t r = 0; r < site.rows; ++r) Row(site, r, key, keys);
    void* sums[] = {site.scores, site.v + key * s_.v.row, site.y, site.scratchpad};
    return calls.sums->Run(sums);
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
    if (s_.mask) Mask(site, r, key, keys);
    const int64_t row = site.begin + r;
    if (s_.first) std::fill_n(x, std::clamp<int64_t>(row + *s_.first - key, 0, keys), kNone);
    if (s_.last) {
      const int64_t end = std::clamp<int64_t>(row + *s_.last + 1 - key, 0, keys);
      std::fill_n(x + end, keys - end, kNone);
    }
    const float before = site.most[r], most = RowLoopsOf<float>().fold[kMax](x, n, before);
    const float sum = ExpLoopsOf<float>().exp_sum(x, most, x, n);
    const float factor = before == most ? 1 : std::exp(before - most);
    site.most[r] = most;
    site.sum[r] = site.sum[r] * factor + sum;
    if (factor != 1)
      for (int64_t i = 0; i < s_.width; ++i) site.y[r * s_.y.row + i] *= factor;
  }

  void Mask(const Site& site, int64_t r, int64_t key, int64_t keys) const {
    const int64_t step = s_.mask->column, from = (site.begin + r) * s_.mask->row + key * step;
    float* x = site.scores + r * kKeys;
    const auto apply = [&](auto stride) {
      const uint8_t* sees = site.mask + from;
      const float* more = reinterpret_cast<const float*>(site.mask) + from;
      if (s_.bool_mask)
        for (int64_t i = 0; i < keys; ++i) x[i] = sees[i * stride] != 0 ? x[i] : kNone;
      else
        for (int64_t i = 0; i < keys; ++i) x[i] += more[i * stride];
    };
    if (step == 1)
      apply(std::integral_constant<int64_t, 1>());  // in vectors
    else
      apply(step);
  }

  Shape s_;
  size_t scratchpad_ = 0;                                   // bytes
  std::map<std::pair<int64_t, int64_t>, TileCalls> calls_;  // by rows and keys
};

Matrices MatricesOf(const View& v, uint32_t operand) {
  const size_t n = v.shape.size();
  const auto stride = [&](size_t from_end) {
    return n < from_end || v.shape[n - from_end] == 1 ? 0 : v.strides[n - from_end];
  };
  return {operand, v, stride(2), stride(1)};
}

// The same with strides that the library takes for axes of extent 1.
Matrices OperandOf(const View& v, uint32_t operand) {
  Matrices m = MatricesOf(v, operand);
  const size_t n = v.shape.size();
  if (v.shape[n - 1] == 1) m.column = 1;
  if (v.shape[n - 2] == 1) m.row = std::max<int64_t>(v.shape[n - 1] * m.column, 1);
  return m;
}

absl::StatusOr<MadeAnchor> Make(const AnchorSite& site) {
  const ir::Node& node = *site.task.anchor();
  const auto& op = *node.op.As<ir::Attention>();
  const auto operand = [&](size_t i) { return uint32_t{*site.task.OperandOf(node.in[i])}; };
  const View &q = site.operands[operand(0)], &k = site.operands[operand(1)],
             &v = site.operands[operand(2)];
  if (!IsDense(site.out)) return Unimplemented("attention has no kernel for permuted axes");
  Shape s{.rows = q.shape[q.shape.size() - 2],
          .keys = k.shape[k.shape.size() - 2],
          .head = q.shape.back(),
          .width = v.shape.back(),
          .q = OperandOf(q, operand(0)),
          .k = OperandOf(k, operand(1)),
          .v = OperandOf(v, operand(2)),
          .y = OperandOf(site.out, 0),
          .softcap = static_cast<float>(op.softcap)};
  for (size_t a = 0; a + 2 < site.out.shape.size(); ++a) s.matrices *= site.out.shape[a];
  s.scale = static_cast<float>(op.ScaleFor(s.head));
  if (node.in.size() > 3 && node.in[3] != ir::kAbsent) {
    const View& mask = site.operands[operand(3)];
    s.mask = MatricesOf(mask, operand(3));
    s.bool_mask = mask.dtype == DType::kBool;
  }
  const ir::Attention::Band band = op.BandOf(s.rows, s.keys);
  if (band.first) s.first = band.first->constant();
  if (band.last) s.last = band.last->constant();
  const double work = 2.0 * static_cast<double>(s.matrices) * static_cast<double>(s.rows) *
                      static_cast<double>(s.keys) * static_cast<double>(s.head + s.width);
  s.threads = WorthThreads(work / 8) ? site.settings.threads : 1;
  auto call = std::make_unique<AttentionCall>(std::move(s));
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
    return MakeAnchorProgram(task, settings, Make);
  }
};

}  // namespace

const Kernel& AttentionKernel() {
  static const Attentions kKernel;
  return kKernel;
}

}  // namespace forge::cpu
