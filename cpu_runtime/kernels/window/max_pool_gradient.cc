// SPDX-License-Identifier: Apache-2.0
// The gradient of max pooling: each window adds to its largest element. Threads have planes of
// their own, or neighbouring channels of an image where channels are last.
#include "ir/ops/pooling/max_pool_gradient.h"

#include <cmath>

#include "cpu_runtime/kernels/window/pool_axis.h"
#include "cpu_runtime/parallel.h"

namespace forge::cpu {
namespace {

constexpr int64_t kChannels = 64;  // neighbouring ones, at most, that are searched together

template <class T>
class GradientCall final : public AnchorCall {
 public:
  GradientCall(const ir::MaxPoolGradient& op, const View& x, const View& dy, int threads)
      : shape_(x.shape),
        x_strides_(x.strides),
        dy_strides_(dy.strides),
        extent_(ir::VolumeOf(x.shape)),
        places_(ir::VolumeOf(dy.shape)),
        x_steps_(ir::VolumeOf(x.strides)),
        dy_steps_(ir::VolumeOf(dy.strides)),
        axes_(PoolAxesOf(op, x)),
        taps_(AllTapsOf(axes_, places_)),
        threads_(threads) {
    if (x.strides[1] == 1 && dy.strides[1] == 1) together_ = std::min(kChannels, x.shape[1]);
  }
  std::string_view kernel() const override { return "max_pool_gradient"; }
  // The operands x and dy.
  void Read(uint32_t x, uint32_t dy) { x_ = x, dy_ = dy; }

  absl::Status Run(const Arguments& a) const override {
    const int64_t parts = together_ == 0 ? 0 : (shape_[1] + together_ - 1) / together_;
    const int64_t window = axes_[0].kernel * axes_[1].kernel * axes_[2].kernel;
    const double work = static_cast<double>(shape_[0] * shape_[1] * ir::PlacesOf(places_)) *
                        static_cast<double>(window);
    ParallelParts({shape_[0] * parts, 1, WorthThreads(work) ? threads_ : 1},
                  [&](int, int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) Channels(a, i / parts, i % parts);
                  });
    return absl::OkStatus();
  }

 private:
  struct Planes {
    const T *x, *dy;
    T* dx;
    size_t count;  // neighbouring channels
  };

  void Channels(const Arguments& a, int64_t image, int64_t part) const {
    const int64_t first = part * together_;
    const int64_t at = image * x_strides_[0] + first * x_strides_[1];
    const Planes p{reinterpret_cast<const T*>(a.operands[x_]) + at,
                   reinterpret_cast<const T*>(a.operands[dy_]) + image * dy_strides_[0] +
                       first * dy_strides_[1],
                   reinterpret_cast<T*>(a.out) + at,
                   static_cast<size_t>(std::min(together_, shape_[1] - first))};
    ForEach(extent_, x_steps_, [&](int64_t place) { std::fill_n(p.dx + place, p.count, T(0)); });
    for (int64_t d = 0; d < places_[0]; ++d)
      for (int64_t h = 0; h < places_[1]; ++h)
        for (int64_t w = 0; w < places_[2]; ++w) Window(p, {d, h, w});
  }

  // Calls f(offset) for each place of a volume.
  template <class F>
  static void ForEach(const ir::PerAxis<int64_t>& extent, const ir::PerAxis<int64_t>& steps, F f) {
    for (int64_t d = 0; d < extent[0]; ++d)
      for (int64_t h = 0; h < extent[1]; ++h)
        for (int64_t w = 0; w < extent[2]; ++w) f(d * steps[0] + h * steps[1] + w * steps[2]);
  }

  void Window(const Planes& p, const ir::PerAxis<int64_t>& at) const {
    ir::PerAxis<int64_t> taps, steps;
    int64_t first = 0, of_dy = 0;
    for (size_t a = 0; a < at.size(); ++a) {
      const Taps& t = taps_[a][static_cast<size_t>(at[a])];
      taps[a] = t.end - t.begin;
      if (taps[a] <= 0) return;  // padding alone
      steps[a] = axes_[a].dilation * x_steps_[a];
      first += (t.place + t.begin * axes_[a].dilation) * x_steps_[a];
      of_dy += at[a] * dy_steps_[a];
    }
    if (p.count == 1)
      AddToLargest(p.x + first, taps, steps, p.dy[of_dy], p.dx + first);
    else
      AddToEach(p, first, taps, steps, p.dy + of_dy);
  }

  // True where v takes the place of `best`: the first of the largest, and the last of those that
  // are not numbers.
  static bool Wins(T v, T best) { return v > best || std::isnan(v); }

  static void AddToLargest(const T* x, const ir::PerAxis<int64_t>& taps,
                           const ir::PerAxis<int64_t>& steps, T dy, T* dx) {
    T best = *x;
    int64_t where = 0;
    ForEach(taps, steps, [&](int64_t tap) {
      if (Wins(x[tap], best)) best = x[tap], where = tap;
    });
    dx[where] += dy;
  }

  // The same for neighbouring channels.
  static void AddToEach(const Planes& p, int64_t first, const ir::PerAxis<int64_t>& taps,
                        const ir::PerAxis<int64_t>& steps, const T* dy) {
    const T* x = p.x + first;
    T best[kChannels];
    int64_t where[kChannels];
    std::copy_n(x, p.count, best);
    std::fill_n(where, p.count, 0);
    ForEach(taps, steps, [&](int64_t tap) {
      for (size_t c = 0; c < p.count; ++c) {
        const T v = x[tap + static_cast<int64_t>(c)];
        const bool wins = Wins(v, best[c]);
        best[c] = wins ? v : best[c];
        where[c] = wins ? tap : where[c];
      }
    });
    T* dx = p.dx + first;
    for (size_t c = 0; c < p.count; ++c) dx[where[c] + static_cast<int64_t>(c)] += dy[c];
  }

  std::vector<int64_t> shape_, x_strides_, dy_strides_;
  ir::PerAxis<int64_t> extent_, places_, x_steps_, dy_steps_;
  ir::PerAxis<PoolAxis> axes_;
  AllTaps taps_;
  int64_t together_ = 1;
  int threads_;
  uint32_t x_ = 0, dy_ = 0;
};

template <class T>
std::unique_ptr<AnchorCall> MakeCall(const AnchorSite& site) {
  const ir::Node& node = *site.task.anchor();
  const uint32_t x = *site.task.OperandOf(node.in[0]), dy = *site.task.OperandOf(node.in[1]);
  auto call =
      std::make_unique<GradientCall<T>>(*node.op.As<ir::MaxPoolGradient>(), site.operands[x],
                                        site.operands[dy], site.settings.threads);
  call->Read(x, dy);
  return call;
}

absl::StatusOr<MadeAnchor> MakeMaxPoolGradient(const AnchorSite& site) {
  const ir::Node& node = *site.task.anchor();
  if (site.operands[*site.task.OperandOf(node.in[0])].strides != site.out.strides)
    return Unimplemented("max_pool_gradient requires equal layouts of x and dx");
  return MadeAnchor{site.out.dtype == DType::kF64 ? MakeCall<double>(site) : MakeCall<float>(site),
                    node.first_out};
}

class MaxPoolGradient final : public Kernel {
 public:
  bool Knows(const Task& task) const override { return IsAnchoredBy<ir::MaxPoolGradient>(task); }
  Verdict Takes(const Task& task) const override {
    if (Verdict v = TakesEpilogue(task); !v) return v;
    return Verdict::Yes("max_pool_gradient");
  }
  std::vector<ir::EncodingChoice> Encodings(const Task& task,
                                            const Settings& settings) const override {
    return BothLayouts(task, settings);
  }
  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    return MakeAnchorProgram(task, settings, MakeMaxPoolGradient);
  }
};

}  // namespace

const Kernel& MaxPoolGradientKernel() {
  static const MaxPoolGradient kKernel;
  return kKernel;
}

}  // namespace forge::cpu
