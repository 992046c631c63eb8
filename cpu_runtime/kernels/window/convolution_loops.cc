// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/kernels/window/convolution_loops.h"

#include "cpu_runtime/parallel.h"
#include "ir/ops/spatial/window.h"

namespace forge::cpu {
namespace {

template <class T>
class Loops final : public AnchorCall {
 public:
  explicit Loops(ConvolutionLoops l)
      : l_(std::move(l)),
        window_(ir::InVolume(ir::WindowOver(l_.op, l_.x.shape.size()))),
        extent_(ir::VolumeOf(l_.x.shape)),
        kernel_(ir::VolumeOf(l_.w.shape)),
        places_(ir::VolumeOf(l_.y.shape)),
        x_steps_(ir::VolumeOf(l_.x.strides)),
        w_steps_(ir::VolumeOf(l_.w.strides)),
        y_steps_(ir::VolumeOf(l_.y.strides)) {}
  std::string_view kernel() const override { return "convolution_loops"; }

  absl::Status Run(const Arguments& a) const override {
    const auto* x = reinterpret_cast<const T*>(a.operands[l_.operands[0]]);
    const auto* w = reinterpret_cast<const T*>(a.operands[l_.operands[1]]);
    const auto* bias =
        l_.operands.size() > 2 ? reinterpret_cast<const T*>(a.operands[l_.operands[2]]) : nullptr;
    auto* y = reinterpret_cast<T*>(a.out);
    const int64_t rows = places_[0] * places_[1];
    ParallelParts({l_.y.shape[0] * l_.y.shape[1] * rows, 1, l_.threads},
                  [&](int, int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      const int64_t nm = i / rows, n = nm / l_.y.shape[1], m = nm % l_.y.shape[1];
                      Row({n, m, i % rows}, x, w, bias ? bias[m] : T{0}, y);
                    }
                  });
    return absl::OkStatus();
  }

 private:
  struct Place {
    int64_t n, m, row;
  };
  using Index = ir::PerAxis<int64_t>;

  static int64_t Offset(const Index& at, const Index& steps) {
    return at[0] * steps[0] + at[1] * steps[1] + at[2] * steps[2];
  }

  void Row(const Place& at, const T* x, const T* w, T bias, T* y) const {
    const auto &xs = l_.x.strides, &ys = l_.y.strides;
    const int64_t channel = at.m / (l_.y.shape[1] / l_.op.groups) * l_.w.shape[1];
    const T* image = x + at.n * xs[0] + channel * xs[1];
    Index out{at.row / places_[1], at.row % places_[1], 0};
    T* to = y + at.n * ys[0] + at.m * ys[1];
    for (; out[2] < places_[2]; ++out[2])
      to[Offset(out, y_steps_)] = bias + Window(image, w + at.m * l_.w.strides[0], out);
  }

  T Window(const T* image, const T* w, const Index& out) const {
    T sum = 0;
    for (int64_t i = 0; i < ir::PlacesOf(kernel_); ++i) {
      const Index tap = ir::PlaceIn(kernel_, i);
      Index at{};
      bool inside = true;
      for (size_t a = 0; a < at.size(); ++a) {
        at[a] = window_[a].PlaceOf(out[a], tap[a]);
        inside = inside && at[a] >= 0 && at[a] < extent_[a];
      }
      if (!inside) continue;
      const T* from = image + Offset(at, x_steps_);
      const T* weight = w + Offset(tap, w_steps_);
      for (int64_t c = 0; c < l_.w.shape[1]; ++c)
        sum += from[c * l_.x.strides[1]] * weight[c * l_.w.strides[1]];
    }
    return sum;
  }

  ConvolutionLoops l_;
  ir::PerAxis<ir::WindowAxis> window_;
  Index extent_, kernel_, places_;
  Index x_steps_, w_steps_, y_steps_;
};

}  // namespace

std::unique_ptr<AnchorCall> MakeConvolutionLoops(ConvolutionLoops loops) {
  if (loops.x.dtype == DType::kF64) return std::make_unique<Loops<double>>(std::move(loops));
  return std::make_unique<Loops<float>>(std::move(loops));
}

}  // namespace forge::cpu
