// SPDX-License-Identifier: Apache-2.0
// Fourier transforms along an axis, in stages of small radices. Threads have rows of their own.
#include <algorithm>
#include <cmath>

#include "cpu_runtime/kernels/axis/rows_along.h"
#include "cpu_runtime/kernels/fourier/fourier_stages.h"
#include "cpu_runtime/parallel.h"
#include "ir/ops/fft/dft.h"
#include "ir/ops/fft/fft.h"

namespace forge::cpu {
namespace {

// Neighbouring numbers that are transformed together along an axis that is not the last one.
constexpr int64_t kFourierColumns = 32;

// The transforms along one axis, in tiles of neighbouring columns.
template <class T>
class FourierAxis {
 public:
  FourierAxis(const RowsAlong& rows, int threads)
      : rows_(rows), threads_(threads), stages_(FourierStagesOf<T>(rows.along)) {
    const double n = static_cast<double>(rows.along) + 1;
    if (!WorthThreads(static_cast<double>(rows.elements()) * 5 * std::log2(n))) threads_ = 1;
  }
  int64_t inner() const { return rows_.inner; }
  int64_t along() const { return rows_.along; }
  // Two copies of both parts of a tile, for each thread.
  int64_t ScratchElements() const { return threads_ * ScratchOfThread(); }
  // Calls f(first element, columns, scratch) for each tile.
  template <class F>
  void EachTile(T* scratch, F f) const {
    const int64_t tiles = rows_.inner == 0 ? 0 : (rows_.inner - 1) / Columns() + 1;
    const auto tile = [&](int64_t i, T* its_scratch) {
      const int64_t column = i % tiles * Columns();
      f(i / tiles * rows_.along * rows_.inner + column, std::min(Columns(), rows_.inner - column),
        its_scratch);
    };
    ParallelShares({rows_.outer * tiles, 1, threads_}, [&](int thread, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) tile(i, scratch + thread * ScratchOfThread());
    });
  }
  // Transforms a tile; the first copy in scratch may hold x.
  void Transform(FourierParts<const T> x, const FourierParts<T>& y, int64_t columns,
                 T* scratch) const {
    for (size_t i = 0; i < stages_.size(); ++i) {
      const bool last = i + 1 == stages_.size();
      const FourierParts<T> to = last ? y : Copy(scratch, i + 1, columns);
      RunFourierStage(stages_[i], x, to, columns);
      x = {to.re, to.im, to.row};
    }
    for (int64_t c = 0; stages_.empty() && c < columns; ++c) {  // of one element
      y.re[c] = x.re == nullptr ? T(0) : x.re[c];
      y.im[c] = x.im == nullptr ? T(0) : x.im[c];
    }
  }
  // The copy that holds the operand of stage `i`, or the result of the stage before.
  FourierParts<T> Copy(T* scratch, size_t i, int64_t columns) const {
    const int64_t part = rows_.along * Columns();
    T* to = scratch + (i % 2 == 0 ? 0 : 2 * part);
    return {to, to + part, columns};
  }
  size_t stages() const { return stages_.size(); }

 private:
  int64_t Columns() const { return std::min(kFourierColumns, rows_.inner); }
  int64_t ScratchOfThread() const { return 4 * rows_.along * Columns(); }

  RowsAlong rows_;
  int threads_;
  std::vector<FourierStage<T>> stages_;
};

// ---- real and imaginary parts -------------------------------------------------------------------

template <class T>
class PartsCall final : public AnchorCall {
 public:
  PartsCall(const FourierAxis<T>& axis, bool inverse, std::optional<uint32_t> re,
            std::optional<uint32_t> im)
      : axis_(axis), inverse_(inverse), re_(re), im_(im) {}
  std::string_view kernel() const override { return "fourier"; }
  uint64_t scratch_bytes() const override {
    return static_cast<uint64_t>(axis_.ScratchElements()) * sizeof(T);
  }
  absl::Status Run(const Arguments& a) const override {
    const auto in = [&](const std::optional<uint32_t>& operand, int64_t at) {
      return operand ? reinterpret_cast<const T*>(a.operands[*operand]) + at : nullptr;
    };
    auto *re = reinterpret_cast<T*>(a.out), *im = reinterpret_cast<T*>(a.more[0]);
    axis_.EachTile(reinterpret_cast<T*>(a.scratch), [&](int64_t at, int64_t columns, T* scratch) {
      FourierParts<const T> x{in(re_, at), in(im_, at), axis_.inner()};
      FourierParts<T> y{re + at, im + at, axis_.inner()};
      if (inverse_) std::swap(x.re, x.im), std::swap(y.re, y.im);
      axis_.Transform(x, y, columns, scratch);
    });
    return absl::OkStatus();
  }

 private:
  FourierAxis<T> axis_;
  bool inverse_;
  std::optional<uint32_t> re_, im_;
};

template <class T>
absl::StatusOr<MadeAnchor> MakeParts(const AnchorSite& site) {
  const ir::Node& node = *site.task.anchor();
  const auto& op = *node.op.As<ir::Dft>();
  FORGE_ASSIGN_OR_RETURN(const RowsAlong rows, RowsAlongOf(site.out, op.axis));
  const std::optional<uint32_t> re = site.task.OperandOf(node.in[0]);
  std::optional<uint32_t> im;
  if (node.in[1] != ir::kAbsent) im = site.task.OperandOf(node.in[1]);
  for (const View* v : {&site.operands[*re], &site.operands[im.value_or(*re)], &site.more[0]})
    if (!IsRowMajor(*v)) return Unimplemented("the axes of a part are permuted");
  const FourierAxis<T> axis(rows, site.settings.threads);
  return MadeAnchor{std::make_unique<PartsCall<T>>(axis, op.inverse, re, im), node.first_out};
}

// ---- complex numbers ----------------------------------------------------------------------------

// Axis after axis: the first reads x, the others the result itself.
template <class T>
class ComplexCall final : public AnchorCall {
 public:
  ComplexCall(std::vector<FourierAxis<T>> axes, bool inverse, double scale, uint32_t operand)
      : axes_(std::move(axes)), inverse_(inverse), scale_(scale), operand_(operand) {}
  std::string_view kernel() const override { return "fourier"; }
  uint64_t scratch_bytes() const override {
    int64_t most = 0;
    for (const FourierAxis<T>& axis : axes_) most = std::max(most, axis.ScratchElements());
    return static_cast<uint64_t>(most) * sizeof(T);
  }
  absl::Status Run(const Arguments& a) const override {
    const auto* x = reinterpret_cast<const T*>(a.operands[operand_]);
    auto* y = reinterpret_cast<T*>(a.out);
    for (size_t i = 0; i < axes_.size(); ++i)
      Along(axes_[i], i == 0 ? x : y, y, i + 1 == axes_.size() ? static_cast<T>(scale_) : T(1),
            reinterpret_cast<T*>(a.scratch));
    return absl::OkStatus();
  }

 private:
  void Along(const FourierAxis<T>& axis, const T* x, T* y, T scale, T* scratch) const {
    axis.EachTile(scratch, [&](int64_t at, int64_t columns, T* its_scratch) {
      // A pass over x leaves both parts in the first copy, the stages in another.
      FourierParts<T> from = axis.Copy(its_scratch, 0, columns);
      FourierParts<T> to = axis.Copy(its_scratch, std::max<size_t>(axis.stages(), 1), columns);
      const int64_t rows = axis.inner() == 1 ? 1 : axis.along();
      const int64_t count = axis.inner() == 1 ? axis.along() : columns;
      for (int64_t row = 0; row < rows; ++row)
        SplitComplex(x + 2 * (at + row * axis.inner()), from.re + row * columns,
                     from.im + row * columns, count);
      if (inverse_) std::swap(from.re, from.im), std::swap(to.re, to.im);
      axis.Transform({from.re, from.im, columns}, to, columns, its_scratch);
      if (inverse_) std::swap(to.re, to.im);
      for (int64_t row = 0; row < rows; ++row)
        JoinComplex(to.re + row * columns, to.im + row * columns, scale,
                    y + 2 * (at + row * axis.inner()), count);
    });
  }

  std::vector<FourierAxis<T>> axes_;
  bool inverse_;
  double scale_;
  uint32_t operand_;
};

template <class T>
absl::StatusOr<MadeAnchor> MakeComplex(const AnchorSite& site) {
  const ir::Node& node = *site.task.anchor();
  const auto& op = *node.op.As<ir::Fft>();
  std::vector<FourierAxis<T>> axes;
  double elements = 1;
  for (const int64_t axis : op.axes) {
    FORGE_ASSIGN_OR_RETURN(const RowsAlong rows, RowsAlongOf(site.out, axis));
    axes.emplace_back(rows, site.settings.threads);
    elements *= static_cast<double>(rows.along);
  }
  const uint32_t operand = *site.task.OperandOf(node.in[0]);
  if (!IsRowMajor(site.operands[operand])) return Unimplemented("the axes of x are permuted");
  const double scale = 1 / ir::FftDivisor(op.norm, op.inverse, elements);
  return MadeAnchor{std::make_unique<ComplexCall<T>>(std::move(axes), op.inverse, scale, operand),
                    node.first_out};
}

// ---- real signals -------------------------------------------------------------------------------

// Rows of an even number of elements: a transform of half as many complex numbers each.
template <class T>
class RealCall final : public AnchorCall {
 public:
  RealCall(const FourierAxis<T>& half, double scale, uint32_t operand)
      : half_(half), signal_(half.along()), scale_(scale), operand_(operand) {}
  std::string_view kernel() const override { return "fourier_real"; }
  uint64_t scratch_bytes() const override {
    return static_cast<uint64_t>(half_.ScratchElements()) * sizeof(T);
  }
  absl::Status Run(const Arguments& a) const override {
    const auto* x = reinterpret_cast<const T*>(a.operands[operand_]);
    auto* y = reinterpret_cast<T*>(a.out);
    half_.EachTile(reinterpret_cast<T*>(a.scratch), [&](int64_t at, int64_t, T* scratch) {
      const FourierParts<T> from = half_.Copy(scratch, 0, 1);
      const FourierParts<T> to = half_.Copy(scratch, std::max<size_t>(half_.stages(), 1), 1);
      SplitComplex(x + 2 * at, from.re, from.im, signal_.half);
      half_.Transform({from.re, from.im, 1}, to, 1, scratch);
      const int64_t row = at / signal_.half;
      signal_.Store(to.re, to.im, static_cast<T>(scale_), y + 2 * row * (signal_.half + 1));
    });
    return absl::OkStatus();
  }

 private:
  FourierAxis<T> half_;
  RealSignal<T> signal_;
  double scale_;
  uint32_t operand_;
};

template <class T>
absl::StatusOr<MadeAnchor> MakeReal(const AnchorSite& site) {
  const ir::Node& node = *site.task.anchor();
  const uint32_t operand = *site.task.OperandOf(node.in[0]);
  FORGE_ASSIGN_OR_RETURN(RowsAlong rows, RowsAlongOf(site.operands[operand], -1));
  const double divisor =
      ir::FftDivisor(node.op.As<ir::Rfft>()->norm, false, static_cast<double>(rows.along));
  rows.along /= 2;
  const FourierAxis<T> half(rows, site.settings.threads);
  return MadeAnchor{std::make_unique<RealCall<T>>(half, 1 / divisor, operand), node.first_out};
}

Verdict TakesLength(const ir::Dim& n) {
  if (!n.is_constant()) return Verdict::No("the length of the transform is open");
  if (n.constant() > ir::kLongestDft) return Verdict::No("the transform is too long");
  int64_t left = n.constant();
  for (int64_t r = 2; r <= kLargestRadix && left > 0; ++r)
    while (left % r == 0) left /= r;
  if (left > 1) return Verdict::No(fmt::format("{} has no small factors", left));
  return Verdict::Yes("fourier");
}

Verdict TakesReal(const ir::Rfft& op, const ir::Dims& shape) {
  const auto last = static_cast<int64_t>(shape.size()) - 1;
  if (!op.sizes.empty()) return Verdict::No("the signal is cut or filled");
  if (op.axes.size() != 1 || (op.axes[0] != -1 && op.axes[0] != last))
    return Verdict::No("the transform is not of rows alone");
  if (shape.back().divisor() % 2 != 0) return Verdict::No("rows are of odd length");
  return TakesLength(FloorDiv(shape.back(), 2));
}

// ---- the kernel ---------------------------------------------------------------------------------

absl::StatusOr<MadeAnchor> MakeFourier(const AnchorSite& site) {
  if (site.task.anchor()->op.Is<ir::Rfft>())
    return site.out.dtype == DType::kC128 ? MakeReal<double>(site) : MakeReal<float>(site);
  switch (site.out.dtype) {
    case DType::kC64:
      return MakeComplex<float>(site);
    case DType::kC128:
      return MakeComplex<double>(site);
    case DType::kF64:
      return MakeParts<double>(site);
    default:
      return MakeParts<float>(site);
  }
}

Verdict TakesLengths(const Task& task) {
  const ir::Node& node = *task.anchor();
  const ir::Dims& shape = task.body().type(node.in[0]).shape();
  if (const auto* rfft = node.op.As<ir::Rfft>()) return TakesReal(*rfft, shape);
  std::vector<int64_t> axes;
  if (const auto* fft = node.op.As<ir::Fft>()) {
    if (!fft->sizes.empty()) return Verdict::No("the signal is cut or filled");
    axes = fft->axes;
  } else {
    axes = {node.op.As<ir::Dft>()->axis};
  }
  for (const int64_t axis : axes) {
    const int64_t at = axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis;
    if (Verdict v = TakesLength(shape[static_cast<size_t>(at)]); !v) return v;
  }
  return Verdict::Yes("fourier");
}

class Fourier final : public Kernel {
 public:
  bool Knows(const Task& task) const override {
    return IsAnchoredBy<ir::Dft>(task) || IsAnchoredBy<ir::Fft>(task) ||
           IsAnchoredBy<ir::Rfft>(task);
  }
  Verdict Takes(const Task& task) const override {
    if (Verdict v = TakesEpilogue(task); !v) return v;
    return TakesLengths(task);
  }
  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    return MakeAnchorProgram(task, settings, MakeFourier);
  }
};

}  // namespace

const Kernel& FourierKernel() {
  static const Fourier kKernel;
  return kKernel;
}

}  // namespace forge::cpu
