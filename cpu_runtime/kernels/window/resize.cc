// SPDX-License-Identifier: Apache-2.0
// Interpolation along the last axes: where each element of the result reads, and the weights, are
// computed once for each axis.
#include "ir/ops/spatial/resize.h"

#include <algorithm>
#include <array>

#include "cpu_runtime/kernels/axis/rows_along.h"
#include "cpu_runtime/kernels/indexing/gathered_sums.h"
#include "cpu_runtime/parallel.h"

namespace forge::cpu {
namespace {

// Elements of a block, the most axes, and the most elements that one element of the result reads.
constexpr int64_t kResizedBlock = 256, kMostResizedTerms = 16;
constexpr size_t kMostResizedAxes = 3;

// What the elements of one axis of the result read: `taps` places and weights each; place -1: none.
template <class T>
struct AxisTaps {
  int64_t extent = 1, size = 1;  // of the operand and the result
  size_t taps = 1;
  std::vector<int64_t> places;
  std::vector<T> weights;
};

// Keys' kernel at a distance of up to 1 and of 1 to 2.
template <class T>
T NearWeight(T d, T a) {
  return ((a + 2) * d - (a + 3)) * d * d + 1;
}
template <class T>
T FarWeight(T d, T a) {
  return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

// An axis that stays as it is.
template <class T>
AxisTaps<T> SameAxis(int64_t extent) {
  AxisTaps<T> axis{.extent = extent, .size = extent, .places = {}, .weights = {}};
  for (int64_t i = 0; i < extent; ++i) axis.places.push_back(i);
  axis.weights.assign(static_cast<size_t>(extent), T(1));
  return axis;
}

// Whole numbers decide between which elements one lies. Where it lies on one, that alone is read:
// its neighbours may be infinite.
template <class T>
AxisTaps<T> ResizedAxis(const ir::Resize& op, const ir::ResizeRatio& r) {
  const bool cubic = op.kind == ir::ResizeKind::kCubic;
  const int64_t step = r.step.constant(), shift = r.shift.constant(),
                divisor = r.divisor.constant();
  AxisTaps<T> axis{.extent = r.extent.constant(),
                   .size = r.size.constant(),
                   .taps = cubic ? size_t{4} : size_t{2},
                   .places = {},
                   .weights = {}};
  const T a = static_cast<T>(op.cubic);
  for (int64_t i = 0; i < axis.size; ++i) {
    const int64_t at = i * step + shift;
    const int64_t rest = (at % divisor + divisor) % divisor, low = (at - rest) / divisor;
    const T t = static_cast<T>(rest) / static_cast<T>(divisor), back = 1 - t;
    std::array<T, 4> weights = {back, t, 0, 0};
    if (cubic)
      weights = {FarWeight(t + 1, a), NearWeight(t, a), NearWeight(back, a),
                 FarWeight(back + 1, a)};
    const int64_t first = cubic ? low - 1 : low;
    for (size_t k = 0; k < axis.taps; ++k) {
      const int64_t place = first + static_cast<int64_t>(k);
      const bool read = rest != 0 || place == low;
      axis.places.push_back(read ? std::clamp<int64_t>(place, 0, axis.extent - 1) : -1);
      axis.weights.push_back(rest == 0 ? T(1) : weights[k]);
    }
  }
  return axis;
}

template <class T>
struct ResizeShape {
  std::vector<AxisTaps<T>> axes;
  int64_t planes = 1, from = 1, to = 1;  // planes, and their elements in operand and result
  size_t terms = 1;
  uint32_t x = 0;
};

template <class T>
class ResizeBlock {
 public:
  explicit ResizeBlock(const ResizeShape<T>& shape) : s_(shape) {}
  // Computes what the elements first .. first + n - 1 of a plane of the result read.
  void Set(int64_t first, int64_t n) {
    const int64_t width = s_.axes.back().size;
    for (int64_t i = 0; i < n;) {
      const int64_t row = (first + i) / width, column = (first + i) % width;
      const int64_t count = std::min(n - i, width - column);
      for (size_t t = 0; t < s_.terms / s_.axes.back().taps; ++t)
        SetRow(i, Along(row, t), t, {column, count});
      i += count;
    }
  }
  GatheredSum<T> Sum(int64_t n, const T* x, T* y) const {
    return {s_.terms,
            static_cast<size_t>(n),
            places_.data(),
            weights_.data(),
            static_cast<size_t>(kResizedBlock),
            x,
            y};
  }

 private:
  // What term `term` of a row reads along all axes but the last.
  struct RowTerm {
    int64_t begin = 0;  // of the row of the operand; -1: none
    T weight = 1;
  };
  struct Columns {
    int64_t first, count;
  };
  RowTerm Along(int64_t row, size_t term) const {
    RowTerm out;
    int64_t stride = s_.axes.back().extent;
    for (size_t a = s_.axes.size() - 1; a-- > 0;) {
      const AxisTaps<T>& axis = s_.axes[a];
      const size_t entry = static_cast<size_t>(row % axis.size) * axis.taps + term % axis.taps;
      const int64_t place = axis.places[entry];
      out.begin = out.begin < 0 || place < 0 ? -1 : out.begin + place * stride;
      out.weight *= axis.weights[entry];
      row /= axis.size;
      term /= axis.taps;
      stride *= axis.extent;
    }
    return out;
  }
  void SetRow(int64_t i, const RowTerm& row, size_t term, Columns columns) {
    const AxisTaps<T>& last = s_.axes.back();
    for (size_t k = 0; k < last.taps; ++k) {
      const size_t to = (term * last.taps + k) * kResizedBlock + static_cast<size_t>(i);
      for (int64_t c = 0; c < columns.count; ++c) {
        const size_t entry = static_cast<size_t>(columns.first + c) * last.taps + k;
        const int64_t place = last.places[entry];
        const bool read = row.begin >= 0 && place >= 0;
        places_[to + static_cast<size_t>(c)] = static_cast<int32_t>(read ? row.begin + place : -1);
        weights_[to + static_cast<size_t>(c)] = row.weight * last.weights[entry];
      }
    }
  }

  const ResizeShape<T>& s_;
  std::array<int32_t, kMostResizedTerms * kResizedBlock> places_ = {};
  std::array<T, kMostResizedTerms * kResizedBlock> weights_ = {};
};

template <class T>
class ResizeCall final : public AnchorCall {
 public:
  ResizeCall(ResizeShape<T> shape, int threads) : s_(std::move(shape)), threads_(threads) {}
  std::string_view kernel() const override { return "resize"; }
  absl::Status Run(const Arguments& a) const override {
    const int64_t blocks = (s_.to + kResizedBlock - 1) / kResizedBlock;
    const double work = static_cast<double>(s_.planes * s_.to) * static_cast<double>(s_.terms);
    const auto* x = reinterpret_cast<const T*>(a.operands[s_.x]);
    auto* y = reinterpret_cast<T*>(a.out);
    ParallelParts({blocks, 1, WorthThreads(work) ? threads_ : 1},
                  [&](int, int64_t begin, int64_t end) {
                    ResizeBlock<T> block(s_);
                    for (int64_t b = begin; b < end; ++b) {
                      const int64_t first = b * kResizedBlock;
                      const int64_t n = std::min(kResizedBlock, s_.to - first);
                      block.Set(first, n);
                      for (int64_t p = 0; p < s_.planes; ++p)
                        SumGathered(block.Sum(n, x + p * s_.from, y + p * s_.to + first));
                    }
                  });
    return absl::OkStatus();
  }

 private:
  ResizeShape<T> s_;
  int threads_;
};

// The first of the axes that a resize changes.
size_t FirstAxis(std::span<const ir::ResizeRatio> ratios, size_t rank) {
  size_t first = rank;
  for (const ir::ResizeRatio& r : ratios) first = std::min(first, r.axis);
  return first;
}

template <class T>
MadeAnchor MakeResizeOf(const AnchorSite& site, std::span<const ir::ResizeRatio> ratios,
                        uint32_t operand) {
  const ir::Node& node = *site.task.anchor();
  const ir::Resize& op = *node.op.As<ir::Resize>();
  const View& x = site.operands[operand];
  ResizeShape<T> s{.axes = {}, .x = operand};
  const size_t first = FirstAxis(ratios, x.shape.size());
  for (size_t a = 0; a < x.shape.size(); ++a) {
    if (a < first) {
      s.planes *= x.shape[a];
      continue;
    }
    const auto r = std::ranges::find(ratios, a, &ir::ResizeRatio::axis);
    s.axes.push_back(r == ratios.end() ? SameAxis<T>(x.shape[a]) : ResizedAxis<T>(op, *r));
    s.from *= s.axes.back().extent;
    s.to *= s.axes.back().size;
    s.terms *= s.axes.back().taps;
  }
  return {std::make_unique<ResizeCall<T>>(std::move(s), site.settings.threads), node.first_out};
}

absl::StatusOr<MadeAnchor> MakeResize(const AnchorSite& site) {
  const ir::Node& node = *site.task.anchor();
  const uint32_t operand = *site.task.OperandOf(node.in[0]);
  const View& x = site.operands[operand];
  if (!IsRowMajor(x) || !IsRowMajor(site.out))
    return Unimplemented("resize does not support permuted axes");
  const ir::Dims shape(x.shape.begin(), x.shape.end());
  FORGE_ASSIGN_OR_RETURN(const auto ratios, RatiosOf(*node.op.As<ir::Resize>(), shape));
  if (site.out.dtype == DType::kF64) return MakeResizeOf<double>(site, ratios, operand);
  return MakeResizeOf<float>(site, ratios, operand);
}

class Resizes final : public Kernel {
 public:
  bool Knows(const Task& task) const override { return IsAnchoredBy<ir::Resize>(task); }
  Verdict Takes(const Task& task) const override {
    if (Verdict v = TakesEpilogue(task); !v) return v;
    const ir::Resize& op = *task.anchor()->op.As<ir::Resize>();
    const ir::Dims& x = task.body().type(task.anchor()->in[0]).shape();
    if (op.kind == ir::ResizeKind::kNearest)
      return Verdict::No("the nearest elements are a movement of elements");
    const auto ratios = RatiosOf(op, x);
    if (!ratios.ok()) return Verdict::No(std::string(Message(ratios.status())));
    const size_t first = FirstAxis(*ratios, x.size()), axes = x.size() - first;
    if (axes == 0 || axes > (op.kind == ir::ResizeKind::kCubic ? 2 : kMostResizedAxes))
      return Verdict::No(
          fmt::format("axes from {} on of {} are not the last ones", first, x.size()));
    for (const ir::ResizeRatio& r : *ratios)
      for (const ir::Dim& d : {r.step, r.shift, r.divisor, r.size})
        if (d.max() > INT32_MAX || d.min() < INT32_MIN)
          return Verdict::No("places along an axis are beyond an i64");
    if (Product(std::span(x).subspan(first)).max() > INT32_MAX)
      return Verdict::No("planes have more elements than an i32 counts");
    return Verdict::Yes("resize");
  }
  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    return MakeAnchorProgram(task, settings, MakeResize);
  }
};

}  // namespace

const Kernel& ResizeKernel() {
  static const Resizes kKernel;
  return kKernel;
}

}  // namespace forge::cpu
