// SPDX-License-Identifier: Apache-2.0
// The gradient of a convolution's weights: the product of dy by windows of x, which are written out
// for some places at once, so that they stay in a cache. Threads have groups or columns of their
// own, and write the weights as they lie.
#include <map>
#include <tuple>

#include "cpu_runtime/kernels/kernel.h"
#include "cpu_runtime/kernels/product/tile_product.h"
#include "cpu_runtime/parallel.h"
#include "ir/ops/spatial/conv_weight_gradient.h"
#include "ir/ops/spatial/window.h"

namespace forge::cpu {
namespace {

constexpr int64_t kColumns = 16;             // a thread has a multiple of these
constexpr int64_t kBytes = 256 << 10;        // of windows that are written out at once
constexpr int64_t kLeast = 64, kMost = 512;  // places of these

class WeightGradientCall final : public AnchorCall {
 public:
  WeightGradientCall(const ir::ConvWeightGradient& op, const View& x, const View& dy,
                     const View& dw, int threads)
      : x_(x),
        dy_(dy),
        window_(ir::InVolume(ir::WindowOver(op, x.shape.size()))),
        extent_(ir::VolumeOf(x.shape)),
        steps_(ir::VolumeOf(x.strides)),
        places_(ir::VolumeOf(dy.shape)),
        kernel_(ir::VolumeOf(dw.shape)),
        groups_(op.groups),
        outputs_(dw.shape[0] / op.groups),
        channels_(dw.shape[1]),
        taps_(ir::PlacesOf(kernel_)),
        columns_(channels_ * taps_),
        threads_(threads) {
    const int64_t images = dy.shape[0], places = ir::PlacesOf(places_);
    const bool last = dy.strides[1] == 1;
    run_ = last ? images * places : places;
    runs_ = last ? 1 : images;
    row_ = last ? dy.shape[1] : 1;
    column_ = last ? 1 : places;
    const int64_t parts = (threads + groups_ - 1) / groups_;
    part_ =
        std::max(((columns_ + parts - 1) / parts + kColumns - 1) / kColumns * kColumns, kColumns);
    parts_ = (columns_ + part_ - 1) / part_;
    const int64_t fit = kBytes / (static_cast<int64_t>(sizeof(float)) * part_);
    rows_ = std::min(run_, std::clamp(fit, kLeast, kMost));
    by_columns_ = steps_.back() == 1;
  }
  std::string_view kernel() const override { return "convolution_weight_gradient"; }
  uint64_t scratch_bytes() const override {
    return static_cast<uint64_t>(threads_) * ScratchOfThread();
  }
  // The operands x and dy.
  void Read(uint32_t x, uint32_t dy) { x_operand_ = x, dy_operand_ = dy; }

  // Throws dnnl::error.
  void Prepare() {
    if (Empty()) return;
    const ThreadScope alone(1);
    dnnl::post_ops added;
    added.append_sum();
    for (const int64_t rows : {rows_, run_ % rows_})
      for (const int64_t columns : {std::min(part_, columns_), columns_ - (parts_ - 1) * part_})
        for (const bool adds : {false, true}) {
          if (rows == 0 || products_.contains({rows, columns, adds})) continue;
          const TileProduct::Matrix windows{rows, columns, by_columns_ ? 1 : part_,
                                            by_columns_ ? rows_ : 1};
          products_.emplace(
              std::tuple(rows, columns, adds),
              TileProduct({outputs_, rows, column_, row_}, windows, {outputs_, columns, columns_},
                          adds ? added : dnnl::post_ops(), scratchpad_));
        }
  }

  absl::Status Run(const Arguments& a) const override {
    if (Empty()) {
      std::fill_n(reinterpret_cast<float*>(a.out), groups_ * outputs_ * columns_, 0.0F);
      return absl::OkStatus();
    }
    std::vector<absl::Status> failed(static_cast<size_t>(threads_));
    ParallelShares({groups_ * parts_, 1, threads_}, [&](int thread, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        failed[static_cast<size_t>(thread)].Update(Part(a, i / parts_, i % parts_, thread));
    });
    for (const absl::Status& status : failed) FORGE_RETURN_IF_ERROR(status);
    return absl::OkStatus();
  }

 private:
  bool Empty() const { return run_ * runs_ == 0 || columns_ == 0 || outputs_ == 0; }

  uint64_t ScratchOfThread() const {
    const auto windows = static_cast<uint64_t>(rows_ * part_) * sizeof(float);
    return (windows + scratchpad_ + 63) / 64 * 64;
  }

  absl::Status Part(const Arguments& a, int64_t group, int64_t part, int thread) const {
    auto* scratch = a.scratch + static_cast<uint64_t>(thread) * ScratchOfThread();
    auto* windows = reinterpret_cast<float*>(scratch);
    const int64_t begin = part * part_, end = std::min(begin + part_, columns_);
    const float* x =
        reinterpret_cast<const float*>(a.operands[x_operand_]) + group * channels_ * x_.strides[1];
    float* dy = reinterpret_cast<float*>(a.operands[dy_operand_]) + group * outputs_ * column_;
    float* dw = reinterpret_cast<float*>(a.out) + group * outputs_ * columns_ + begin;
    for (int64_t run = 0; run < runs_; ++run)
      for (int64_t k = 0; k < run_; k += rows_) {
        const int64_t rows = std::min(rows_, run_ - k);
        if (by_columns_)
          for (int64_t c = begin; c < end; ++c)
            WriteColumn(x, c, run * run_ + k, rows, windows + (c - begin) * rows_);
        else
          for (int64_t i = 0; i < rows; ++i)
            WriteRow(x, run * run_ + k + i, begin, end, windows + i * part_);
        const bool adds = run > 0 || k > 0;
        FORGE_RETURN_IF_ERROR(
            products_.at({rows, end - begin, adds})
                .Run(dy + run * dy_.strides[0] + k * row_, windows, dw, windows + rows_ * part_));
      }
    return absl::OkStatus();
  }

  // A channel's tap of windows from `place` on, whose elements along the last axis are neighbours.
  void WriteColumn(const float* x, int64_t column, int64_t place, int64_t count, float* to) const {
    const int64_t width = places_[2], volume = ir::PlacesOf(places_);
    const ir::PerAxis<int64_t> tap = ir::PlaceIn(kernel_, column % taps_);
    const ir::Span inside = ir::InsideOf(window_[2], tap[2], extent_[2], width);
    const int64_t stride = window_[2].stride;
    for (const int64_t end = place + count; place < end;) {
      const ir::PerAxis<int64_t> at = ir::PlaceIn(places_, place % volume);
      const int64_t n = std::min(width - at[2], end - place);
      const int64_t d = window_[0].PlaceOf(at[0], tap[0]), h = window_[1].PlaceOf(at[1], tap[1]);
      int64_t first = std::clamp(inside.begin - at[2], int64_t{0}, n);
      const int64_t last = std::clamp(inside.end - at[2], first, n);
      if (d < 0 || d >= extent_[0] || h < 0 || h >= extent_[1]) first = n;
      std::fill_n(to, first, 0.0F);
      if (first < n) {
        const float* from = x + place / volume * x_.strides[0] + column / taps_ * x_.strides[1] +
                            d * steps_[0] + h * steps_[1] + window_[2].PlaceOf(at[2], tap[2]);
        if (stride == 1)
          std::copy(from + first, from + last, to + first);
        else
          for (int64_t i = first; i < last; ++i) to[i] = from[i * stride];
        std::fill(to + last, to + n, 0.0F);
      }
      place += n, to += n;
    }
  }

  // The columns from `begin` to `end` of the window at a place.
  void WriteRow(const float* x, int64_t place, int64_t begin, int64_t end, float* to) const {
    const int64_t image = place / ir::PlacesOf(places_);
    const ir::PerAxis<int64_t> at = ir::PlaceIn(places_, place % ir::PlacesOf(places_));
    const float* from = x + image * x_.strides[0];
    int64_t tap = 0;
    for (int64_t d = 0; d < kernel_[0]; ++d)
      for (int64_t h = 0; h < kernel_[1]; ++h)
        for (int64_t w = 0; w < kernel_[2]; ++w, ++tap) {
          const ir::PerAxis<int64_t> taps{d, h, w};
          int64_t offset = 0;
          bool inside = true;
          for (size_t a = 0; a < at.size(); ++a) {
            const int64_t i = window_[a].PlaceOf(at[a], taps[a]);
            inside &= i >= 0 && i < extent_[a];
            offset += i * steps_[a];
          }
          const int64_t first = (begin - tap + taps_ - 1) / taps_;
          const int64_t last = (end - tap + taps_ - 1) / taps_;
          Spread(inside ? from + offset : nullptr, first, last, to + tap - begin);
        }
  }

  // A tap of the channels from `first` to `last`; null: all are 0.
  void Spread(const float* from, int64_t first, int64_t last, float* to) const {
    const int64_t step = x_.strides[1];
    for (int64_t c = first; c < last; ++c) to[c * taps_] = from ? from[c * step] : 0;
  }

  View x_, dy_;
  ir::PerAxis<ir::WindowAxis> window_;
  ir::PerAxis<int64_t> extent_, steps_, places_, kernel_;
  int64_t groups_, outputs_, channels_, taps_;
  int64_t columns_;  // of a group: channels by taps
  int threads_;
  int64_t run_ = 0, runs_ = 0;    // places of dy at one stride, and how often
  int64_t row_ = 0, column_ = 0;  // strides of places and of channels in dy
  int64_t part_ = 0, parts_ = 0;  // columns of a thread
  int64_t rows_ = 0;              // places that are written out at once
  bool by_columns_ = false;       // windows are written out column by column
  std::map<std::tuple<int64_t, int64_t, bool>, TileProduct> products_;  // rows, columns, adds
  size_t scratchpad_ = 0;
  uint32_t x_operand_ = 0, dy_operand_ = 0;
};

absl::StatusOr<MadeAnchor> MakeWeightGradient(const AnchorSite& site) {
  const ir::Node& node = *site.task.anchor();
  const uint32_t x = *site.task.OperandOf(node.in[0]), dy = *site.task.OperandOf(node.in[1]);
  if (!IsDense(site.out)) return Unimplemented("the gradient of weights is dense");
  auto call =
      std::make_unique<WeightGradientCall>(*node.op.As<ir::ConvWeightGradient>(), site.operands[x],
                                           site.operands[dy], site.out, site.settings.threads);
  call->Read(x, dy);
  FORGE_RETURN_IF_ERROR(Guarded("product", [&] { call->Prepare(); }));
  return MadeAnchor{std::move(call), node.first_out};
}

class ConvolutionWeightGradient final : public Kernel {
 public:
  bool Knows(const Task& task) const override { return IsAnchoredBy<ir::ConvWeightGradient>(task); }
  Verdict Takes(const Task& task) const override {
    const DType t = task.body().type(task.anchor()->first_out).dtype();
    if (ComputedAs(t) != DType::kF32)
      return Verdict::No(fmt::format("the gradient of weights has no kernel for {}", Name(t)));
    if (Verdict v = TakesEpilogue(task); !v) return v;
    return Verdict::Yes("convolution_weight_gradient");
  }
  std::vector<ir::EncodingChoice> Encodings(const Task& task,
                                            const Settings& settings) const override {
    const std::optional<ir::EncodingChoice> last = ChannelsLastChoice(task);
    if (!last) return {};
    constexpr double kDenseCost = 1.5;
    const double seconds = EstimateSeconds(task, settings);
    const ir::EncodingChoice dense{std::vector<ir::EncodingRef>(task.first_result()),
                                   std::vector<ir::EncodingRef>(task.results()),
                                   kDenseCost * seconds};
    ir::EncodingChoice images = dense;
    images.seconds = seconds;
    constexpr int64_t kFewChannels = 16;  // are written out place by place
    const ir::Function& f = task.body();
    for (const uint32_t value : task.anchor()->in) {
      if (f.type(value).shape()[1].max() < kFewChannels) continue;
      const uint32_t operand = *task.OperandOf(value);
      images.in[operand] = last->in[operand];
    }
    return {std::move(images), dense};
  }
  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    return MakeAnchorProgram(task, settings, MakeWeightGradient);
  }
};

}  // namespace

const Kernel& ConvolutionWeightGradientKernel() {
  static const ConvolutionWeightGradient kKernel;
  return kKernel;
}

}  // namespace forge::cpu
