// SPDX-License-Identifier: Apache-2.0
// Fourier transforms along an axis, in stages of small radices. Threads have rows of their own.
#include <algorithm>
#include <cmath>

#include "cpu_runtime/kernels/axis/rows_along.h"
#include "cpu_runtime/kernels/fourier_stages.h"
#include "cpu_runtime/parallel.h"
#include "ir/ops/fft/dft.h"

namespace forge::cpu {
namespace {

// Neighbouring numbers that are transformed together along an axis that is not the last one.
constexpr int64_t kFourierColumns = 32;

struct FourierRows {
  RowsAlong rows;
  bool inverse = false;
  std::optional<uint32_t> re, im;

  int64_t columns() const { return std::min(kFourierColumns, rows.inner); }
  int64_t tiles() const { return rows.inner == 0 ? 0 : (rows.inner - 1) / columns() + 1; }
  double operations() const {
    const auto n = static_cast<double>(rows.along);
    return static_cast<double>(rows.elements()) * 5 * std::log2(n + 1);
  }
};

template <class T>
class FourierCall final : public AnchorCall {
 public:
  FourierCall(const FourierRows& rows, int threads)
      : r_(rows),
        threads_(WorthThreads(rows.operations()) ? threads : 1),
        stages_(FourierStagesOf<T>(rows.rows.along)) {}
  std::string_view kernel() const override { return "fourier"; }
  uint64_t scratch_bytes() const override {
    return static_cast<uint64_t>(threads_ * Scratch()) * sizeof(T);
  }
  absl::Status Run(const Arguments& a) const override {
    const auto in = [&](const std::optional<uint32_t>& operand) {
      return operand ? reinterpret_cast<const T*>(a.operands[*operand]) : nullptr;
    };
    auto *re = reinterpret_cast<T*>(a.out), *im = reinterpret_cast<T*>(a.more[0]);
    FourierParts<const T> x{in(r_.re), in(r_.im), r_.rows.inner};
    FourierParts<T> y{re, im, r_.rows.inner};
    if (r_.inverse) std::swap(x.re, x.im), std::swap(y.re, y.im);
    auto* scratch = reinterpret_cast<T*>(a.scratch);
    ParallelParts({r_.rows.outer * r_.tiles(), 1, threads_},
                  [&](int thread, int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i)
                      Tile(i, x, y, scratch + thread * Scratch());
                  });
    return absl::OkStatus();
  }

 private:
  // Two copies of both parts of a tile.
  int64_t Scratch() const { return 4 * r_.rows.along * r_.columns(); }
  void Tile(int64_t i, const FourierParts<const T>& x, const FourierParts<T>& y, T* scratch) const;
  void Stages(FourierParts<const T> x, const FourierParts<T>& y, int64_t columns, T* scratch) const;

  FourierRows r_;
  int threads_;
  std::vector<FourierStage<T>> stages_;
};

template <class T>
void FourierCall<T>::Tile(int64_t i, const FourierParts<const T>& x, const FourierParts<T>& y,
                          T* scratch) const {
  const int64_t first = i % r_.tiles() * r_.columns();
  const int64_t at = i / r_.tiles() * r_.rows.along * r_.rows.inner + first;
  const auto from = [&](const T* part) { return part == nullptr ? nullptr : part + at; };
  Stages({from(x.re), from(x.im), x.row}, {y.re + at, y.im + at, y.row},
         std::min(r_.columns(), r_.rows.inner - first), scratch);
}

template <class T>
void FourierCall<T>::Stages(FourierParts<const T> x, const FourierParts<T>& y, int64_t columns,
                            T* scratch) const {
  const int64_t part = r_.rows.along * r_.columns();
  for (size_t i = 0; i < stages_.size(); ++i, scratch += i % 2 == 0 ? -2 * part : 2 * part) {
    const bool last = i + 1 == stages_.size();
    const FourierParts<T> to = last ? y : FourierParts<T>{scratch, scratch + part, columns};
    RunFourierStage(stages_[i], x, to, columns);
    x = {to.re, to.im, to.row};
  }
  if (!stages_.empty()) return;
  for (int64_t c = 0; c < columns; ++c) {  // of one element
    y.re[c] = x.re == nullptr ? T(0) : x.re[c];
    y.im[c] = x.im == nullptr ? T(0) : x.im[c];
  }
}

absl::StatusOr<MadeAnchor> MakeFourier(const AnchorSite& site) {
  const ir::Node& node = *site.task.anchor();
  const auto& op = *node.op.As<ir::Dft>();
  FORGE_ASSIGN_OR_RETURN(const RowsAlong rows, RowsAlongOf(site.out, op.axis));
  FourierRows r{.rows = rows, .inverse = op.inverse, .re = {}, .im = {}};
  r.re = site.task.OperandOf(node.in[0]);
  if (node.in[1] != ir::kAbsent) r.im = site.task.OperandOf(node.in[1]);
  for (const View* v :
       {&site.operands[*r.re], r.im ? &site.operands[*r.im] : nullptr, &site.more[0]})
    if (v != nullptr && !IsRowMajor(*v)) return Unimplemented("the axes of a part are permuted");
  const int threads = site.settings.threads;
  if (site.out.dtype == DType::kF64)
    return MadeAnchor{std::make_unique<FourierCall<double>>(r, threads), node.first_out};
  return MadeAnchor{std::make_unique<FourierCall<float>>(r, threads), node.first_out};
}

Verdict TakesLength(const Task& task) {
  const ir::Node& node = *task.anchor();
  const ir::Dims& shape = task.body().type(node.in[0]).shape();
  const auto axis = node.op.As<ir::Dft>()->axis;
  const ir::Dim& n =
      shape[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis)];
  if (!n.is_constant()) return Verdict::No("the length of the transform is open");
  if (n.constant() > ir::kLongestDft) return Verdict::No("the transform is too long");
  int64_t left = n.constant();
  for (int64_t r = 2; r <= kLargestRadix; ++r)
    while (left % r == 0) left /= r;
  if (left > 1) return Verdict::No(fmt::format("{} has no small factors", left));
  return Verdict::Yes("fourier");
}

class Fourier final : public Kernel {
 public:
  bool Knows(const Task& task) const override { return IsAnchoredBy<ir::Dft>(task); }
  Verdict Takes(const Task& task) const override {
    if (Verdict v = TakesEpilogue(task); !v) return v;
    return TakesLength(task);
  }
  std::vector<ir::EncodingChoice> Encodings(const Task&, const Settings&) const override {
    return {};
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
