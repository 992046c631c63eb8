// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/kernels/convolution_loops.h"

#include "cpu_runtime/parallel.h"

namespace forge::cpu {
namespace {

template <class T>
class Loops final : public AnchorCall {
 public:
  explicit Loops(ConvolutionLoops l) : l_(std::move(l)) {}
  std::string_view kernel() const override { return "convolution_loops"; }

  absl::Status Run(const Arguments& a) const override {
    const auto* x = reinterpret_cast<const T*>(a.operands[l_.operands[0]]);
    const auto* w = reinterpret_cast<const T*>(a.operands[l_.operands[1]]);
    const auto* bias =
        l_.operands.size() > 2 ? reinterpret_cast<const T*>(a.operands[l_.operands[2]]) : nullptr;
    auto* y = reinterpret_cast<T*>(a.out);
    const int64_t rows = l_.y.shape[0] * l_.y.shape[1] * l_.y.shape[2];
    ParallelParts({rows, 1, l_.threads}, [&](int, int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t p = row % l_.y.shape[2], nm = row / l_.y.shape[2];
        const int64_t m = nm % l_.y.shape[1], n = nm / l_.y.shape[1];
        Row({n, m, p}, x, w, bias ? bias[m] : T{0}, y);
      }
    });
    return absl::OkStatus();
  }

 private:
  struct Place {
    int64_t n, m, p;
  };

  void Row(const Place& at, const T* x, const T* w, T bias, T* y) const {
    const auto &xs = l_.x.strides, &ys = l_.y.strides;
    const int64_t channel = at.m / (l_.y.shape[1] / l_.op.groups) * l_.w.shape[1];
    const T* image = x + at.n * xs[0] + channel * xs[1];
    T* to = y + at.n * ys[0] + at.m * ys[1] + at.p * ys[2];
    for (int64_t q = 0; q < l_.y.shape[3]; ++q)
      to[q * ys[3]] = bias + Window(image, w + at.m * l_.w.strides[0], at.p, q);
  }

  T Window(const T* image, const T* w, int64_t p, int64_t q) const {
    const auto &xs = l_.x.strides, &ws = l_.w.strides;
    T sum = 0;
    for (int64_t rs = 0; rs < l_.w.shape[2] * l_.w.shape[3]; ++rs) {
      const int64_t r = rs / l_.w.shape[3], s = rs % l_.w.shape[3];
      const int64_t row = p * l_.op.strides[0] + r * l_.op.dilations[0] - l_.op.padding[0];
      const int64_t column = q * l_.op.strides[1] + s * l_.op.dilations[1] - l_.op.padding[1];
      if (row < 0 || row >= l_.x.shape[2] || column < 0 || column >= l_.x.shape[3]) continue;
      const T* from = image + row * xs[2] + column * xs[3];
      const T* weight = w + r * ws[2] + s * ws[3];
      for (int64_t c = 0; c < l_.w.shape[1]; ++c) sum += from[c * xs[1]] * weight[c * ws[1]];
    }
    return sum;
  }

  ConvolutionLoops l_;
};

}  // namespace

std::unique_ptr<AnchorCall> MakeConvolutionLoops(ConvolutionLoops loops) {
  if (loops.x.dtype == DType::kF64) return std::make_unique<Loops<double>>(std::move(loops));
  return std::make_unique<Loops<float>>(std::move(loops));
}

}  // namespace forge::cpu
