// SPDX-License-Identifier: Apache-2.0
// Samples at the places of a grid: places and weights of a block are computed once for all
// channels.
#include "ir/ops/sampling/grid_sample.h"

#include <array>
#include <cmath>

#include "cpu_runtime/kernels/axis/rows_along.h"
#include "cpu_runtime/kernels/indexing/gathered_sums.h"
#include "cpu_runtime/parallel.h"

namespace forge::cpu {
namespace {

// Places of a block, and the most elements that one place reads.
constexpr int64_t kSampledBlock = 256, kMostTerms = 16;

struct SampleShape {
  ir::GridSample op;
  int64_t images = 0, channels = 0, places = 0;
  std::vector<int64_t> extents;  // of the spatial axes of x
  uint32_t x = 0, grid = 0;

  int64_t plane() const {
    int64_t n = 1;
    for (const int64_t extent : extents) n *= extent;
    return n;
  }
  int64_t axes() const { return static_cast<int64_t>(extents.size()); }
  int64_t terms() const {
    if (op.kind == ir::SampleKind::kNearest) return 1;
    return op.kind == ir::SampleKind::kCubic ? 16 : int64_t{1} << axes();
  }
};

// What the places of a block read: see GatheredSum.
template <class T>
class SampleBlock {
 public:
  explicit SampleBlock(const SampleShape& shape) : s_(shape) {}
  // Sets place `i` of the block from its coordinates, of which the first belongs to the last axis.
  void Set(int64_t i, const T* coordinates) {
    std::array<T, 3> at = {};
    for (size_t a = 0; a < s_.extents.size(); ++a) {
      at[a] = InElements(coordinates[s_.extents.size() - 1 - a], a);
      if (s_.op.kind != ir::SampleKind::kCubic) at[a] = Padded(at[a], a);
    }
    if (s_.op.kind == ir::SampleKind::kNearest) {
      for (T& v : at) v = std::nearbyint(v);
      Put(i, 0, at, 1);
    } else if (s_.op.kind == ir::SampleKind::kLinear) {
      SetLinear(i, at);
    } else {
      SetCubic(i, at);
    }
  }
  GatheredSum<T> Sum(int64_t n, const T* x, T* y) const {
    return {static_cast<size_t>(s_.terms()),
            static_cast<size_t>(n),
            places_,
            weights_,
            static_cast<size_t>(kSampledBlock),
            x,
            y};
  }

 private:
  T SizeOf(size_t axis) const { return static_cast<T>(s_.extents[axis]); }
  T InElements(T v, size_t axis) const {
    const T size = SizeOf(axis), half = T(0.5);
    return s_.op.align_corners ? (v + 1) * half * (size - 1) : ((v + 1) * size - 1) * half;
  }
  T Padded(T v, size_t axis) const {
    if (s_.op.padding == ir::SamplePadding::kZeros || std::isnan(v)) return v;
    const T size = SizeOf(axis);
    if (s_.op.padding == ir::SamplePadding::kReflection) v = Reflected(v, size);
    return std::max(std::min(v, size - 1), T(0));
  }
  // Mirrored at both edges, as often as needed.
  T Reflected(T v, T size) const {
    const T low = s_.op.align_corners ? T(0) : T(-0.5);
    const T span = s_.op.align_corners ? std::max(size - 1, T(1)) : size;
    const T from = std::abs(v - low), flips = std::floor(from / span), extra = from - flips * span;
    const T half = flips * T(0.5);
    return (half == std::floor(half) ? extra : span - extra) + low;
  }
  // Sets term `k` of a place to the element at whole coordinates; none where they are outside.
  void Put(int64_t i, int64_t k, const std::array<T, 3>& at, T weight) {
    int64_t flat = 0;
    for (size_t a = 0; a < s_.extents.size(); ++a) {
      const bool inside = at[a] > T(-1) && at[a] < SizeOf(a);
      flat = flat < 0 || !inside ? -1 : flat * s_.extents[a] + static_cast<int64_t>(at[a]);
    }
    places_[k * kSampledBlock + i] = static_cast<int32_t>(flat);
    weights_[k * kSampledBlock + i] = weight;
  }
  void SetLinear(int64_t i, const std::array<T, 3>& at) {
    for (int64_t corner = 0; corner < s_.terms(); ++corner) {
      std::array<T, 3> place = {};
      T weight = 1;
      for (size_t a = 0; a < s_.extents.size(); ++a) {
        const T low = std::floor(at[a]), part = at[a] - low;
        const bool upper = (corner >> a & 1) != 0;
        place[a] = upper ? low + 1 : low;
        weight *= upper ? part : 1 - part;
      }
      Put(i, corner, place, weight);
    }
  }
  void SetCubic(int64_t i, const std::array<T, 3>& at) {
    const T row = std::floor(at[0]), column = std::floor(at[1]);
    const std::array<T, 4> rows = Cubic(at[0] - row), columns = Cubic(at[1] - column);
    for (size_t k = 0; k < 16; ++k) {
      const std::array<T, 3> place = {Padded(row + static_cast<T>(k / 4) - 1, 0),
                                      Padded(column + static_cast<T>(k % 4) - 1, 1)};
      Put(i, static_cast<int64_t>(k), place, rows[k / 4] * columns[k % 4]);
    }
  }
  // The weights of the elements at -1, 0, 1 and 2 from the one below, of Keys' kernel.
  static std::array<T, 4> Cubic(T t) {
    constexpr T kA = T(-0.75);
    const auto near = [](T x) { return ((kA + 2) * x - (kA + 3)) * x * x + 1; };
    const auto far = [](T x) { return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA; };
    return {far(t + 1), near(t), near(1 - t), far(2 - t)};
  }

  const SampleShape& s_;
  int32_t places_[kMostTerms * kSampledBlock] = {};
  T weights_[kMostTerms * kSampledBlock];
};

template <class T>
class SampleCall final : public AnchorCall {
 public:
  SampleCall(const SampleShape& shape, int threads) : s_(shape), threads_(threads) {}
  std::string_view kernel() const override { return "grid_sample"; }
  absl::Status Run(const Arguments& a) const override {
    const int64_t blocks = (s_.places + kSampledBlock - 1) / kSampledBlock;
    const double work =
        static_cast<double>(s_.images * s_.places) * static_cast<double>(s_.channels * s_.terms());
    ParallelParts({s_.images * blocks, 1, WorthThreads(work) ? threads_ : 1},
                  [&](int, int64_t begin, int64_t end) {
                    SampleBlock<T> block(s_);
                    for (int64_t i = begin; i < end; ++i) Block(a, i / blocks, i % blocks, block);
                  });
    return absl::OkStatus();
  }

 private:
  void Block(const Arguments& a, int64_t image, int64_t at, SampleBlock<T>& block) const {
    const int64_t first = at * kSampledBlock, n = std::min(kSampledBlock, s_.places - first);
    const auto* grid = reinterpret_cast<const T*>(a.operands[s_.grid]);
    for (int64_t i = 0; i < n; ++i)
      block.Set(i, grid + (image * s_.places + first + i) * s_.axes());
    for (int64_t c = 0; c < s_.channels; ++c) {
      const int64_t plane = image * s_.channels + c;
      SumGathered(block.Sum(n, reinterpret_cast<const T*>(a.operands[s_.x]) + plane * s_.plane(),
                            reinterpret_cast<T*>(a.out) + plane * s_.places + first));
    }
  }

  SampleShape s_;
  int threads_;
};

absl::StatusOr<MadeAnchor> MakeSample(const AnchorSite& site) {
  const ir::Node& node = *site.task.anchor();
  SampleShape s{.op = *node.op.As<ir::GridSample>(), .extents = {}};
  s.x = *site.task.OperandOf(node.in[0]);
  s.grid = *site.task.OperandOf(node.in[1]);
  const View& x = site.operands[s.x];
  for (const View* v : {&x, &site.operands[s.grid], &site.out})
    if (!IsRowMajor(*v)) return Unimplemented("grid_sample does not support permuted axes");
  s.images = x.shape[0], s.channels = x.shape[1], s.places = 1;
  s.extents.assign(x.shape.begin() + 2, x.shape.end());
  for (size_t a = 2; a < site.out.shape.size(); ++a) s.places *= site.out.shape[a];
  if (s.plane() > INT32_MAX) return Unimplemented("grid_sample of {} elements", s.plane());
  const int threads = site.settings.threads;
  if (site.out.dtype == DType::kF64)
    return MadeAnchor{std::make_unique<SampleCall<double>>(s, threads), node.first_out};
  return MadeAnchor{std::make_unique<SampleCall<float>>(s, threads), node.first_out};
}

class Samples final : public Kernel {
 public:
  bool Knows(const Task& task) const override { return IsAnchoredBy<ir::GridSample>(task); }
  Verdict Takes(const Task& task) const override {
    if (Verdict v = TakesEpilogue(task); !v) return v;
    const ir::Dims& x = task.body().type(task.anchor()->in[0]).shape();
    if (Product(std::span(x).subspan(2)).max() > INT32_MAX)
      return Verdict::No("planes have more elements than an i32 counts");
    return Verdict::Yes("grid_sample");
  }
  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    return MakeAnchorProgram(task, settings, MakeSample);
  }
};

}  // namespace

const Kernel& GridSampleKernel() {
  static const Samples kKernel;
  return kKernel;
}

}  // namespace forge::cpu
