// SPDX-License-Identifier: Apache-2.0
// Layer norm and its gradient in floats, each row in one go while it is in the first cache.
#include "ir/ops/norm/layer_norm.h"

#include <algorithm>

#include "cpu_runtime/kernels/float_kernel.h"
#include "cpu_runtime/kernels/kernel.h"
#include "cpu_runtime/parallel.h"
#include "cpu_runtime/rows/row_loops.h"
#include "ir/op/axes.h"
#include "ir/ops/norm/layer_norm_gradient.h"

namespace forge::cpu {
namespace {

// Gamma or beta: none, or an operand that is repeated to one row.
struct Affine {
  std::optional<uint32_t> operand;
  std::vector<int64_t> row, strides;  // of the operand along the axes of a row

  bool whole() const {
    int64_t step = 1;
    for (size_t a = row.size(); a-- > 0; step *= row[a])
      if (row[a] != 1 && strides[a] != step) return false;
    return true;
  }
  // Its elements; null where there is none. `room` has place for a row.
  template <class T>
  const T* Of(const AnchorCall::Arguments& a, T* room) const;
};

template <class T>
const T* Affine::Of(const AnchorCall::Arguments& a, T* room) const {
  if (!operand) return nullptr;
  const auto* from = reinterpret_cast<const T*>(a.operands[*operand]);
  if (whole()) return from;
  const int64_t length = Product(row);
  for (int64_t i = 0; i < length; ++i) {
    int64_t at = 0, rest = i;
    for (size_t k = row.size(); k-- > 0; rest /= row[k]) at += rest % row[k] * strides[k];
    room[i] = from[at];
  }
  return room;
}

// Rows of gapless memory.
struct Rows {
  std::vector<int64_t> row;  // its axes
  int64_t count, length;
  int Threads(double work_of_element, int threads) const {
    const double work = work_of_element * static_cast<double>(count * length);
    return WorthThreads(work) ? threads : 1;
  }
};
absl::StatusOr<Rows> RowsOf(const View& x, int64_t axis) {
  FORGE_ASSIGN_OR_RETURN(const int64_t first,
                         ir::NormalAxis(axis, static_cast<int64_t>(x.shape.size())));
  const std::vector<int64_t> row(x.shape.begin() + first, x.shape.end());
  const int64_t length = Product(row);
  return Rows{row, Product(std::span(x.shape).first(static_cast<size_t>(first))), length};
}

template <class T>
class LayerNormCall final : public AnchorCall {
 public:
  LayerNormCall(const ir::LayerNorm& op, Rows rows, uint32_t x, std::array<Affine, 2> affine,
                int threads)
      : op_(op), rows_(std::move(rows)), x_(x), affine_(std::move(affine)), threads_(threads) {}
  std::string_view kernel() const override { return "layer_norm"; }
  uint64_t scratch_bytes() const override {
    return affine_.size() * sizeof(T) * static_cast<uint64_t>(rows_.length);
  }

  absl::Status Run(const Arguments& a) const override {
    auto* room = reinterpret_cast<T*>(a.scratch);
    const NormRow<T> all{.x = reinterpret_cast<const T*>(a.operands[x_]),
                         .gamma = affine_[0].Of(a, room),
                         .beta = affine_[1].Of(a, room + rows_.length),
                         .out = reinterpret_cast<T*>(a.out),
                         .n = static_cast<size_t>(rows_.length),
                         .epsilon = static_cast<T>(op_.epsilon),
                         .subtract_mean = op_.subtract_mean};
    ParallelParts({rows_.count, 1, rows_.Threads(6.0, threads_)},
                  [&](int, int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      NormRow<T> row = all;
                      row.x += i * rows_.length;
                      row.out += i * rows_.length;
                      const RowStatistics<T> of_row = NormaliseRow(row);
                      if (a.more.empty()) continue;
                      reinterpret_cast<T*>(a.more[0])[i] = of_row.mean;
                      reinterpret_cast<T*>(a.more[1])[i] = of_row.inverse_deviation;
                    }
                  });
    return absl::OkStatus();
  }

 private:
  ir::LayerNorm op_;
  Rows rows_;
  uint32_t x_;
  std::array<Affine, 2> affine_;
  int threads_;
};

// Sums over rows are those of kMostParts parts, so that they do not depend on the number of
// threads.
template <class T>
class GradientCall final : public AnchorCall {
 public:
  // By LayerNormGradient::Operand.
  using Operands = std::array<std::optional<uint32_t>, 4>;
  GradientCall(Rows rows, Operands operands, Affine gamma, bool columns, int threads)
      : rows_(std::move(rows)),
        operands_(operands),
        gamma_(std::move(gamma)),
        parts_(columns ? std::clamp<int64_t>(rows_.count, 1, kMostParts) : 0),
        threads_(threads) {}
  std::string_view kernel() const override { return "layer_norm_gradient"; }
  uint64_t scratch_bytes() const override {
    return sizeof(T) * static_cast<uint64_t>(rows_.length * (1 + 2 * parts_));
  }
  absl::Status Run(const Arguments& a) const override;

 private:
  static constexpr int64_t kMostParts = 16;

  Rows rows_;
  Operands operands_;
  Affine gamma_;
  int64_t parts_;
  int threads_;
};

template <class T>
absl::Status GradientCall<T>::Run(const Arguments& a) const {
  using enum ir::LayerNormGradient::Operand;
  const auto at = [&](size_t operand) {
    return reinterpret_cast<const T*>(operands_[operand] ? a.operands[*operands_[operand]]
                                                         : nullptr);
  };
  const T *dy = at(kDy), *x = at(kX), *scale = at(kInverseDeviation), *mean = at(kMean);
  auto* room = reinterpret_cast<T*>(a.scratch);
  const T* gamma = gamma_.Of(a, room);
  T* sums = room + rows_.length;  // dgamma and dbeta of each part
  auto* dx = reinterpret_cast<T*>(a.out);
  const int64_t n = rows_.length, parts = std::max<int64_t>(parts_, 1);
  const int64_t share = (rows_.count + parts - 1) / parts;
  const auto rows = [&](int64_t begin, int64_t end, T* dgamma, T* dbeta) {
    for (int64_t i = begin; i < end; ++i)
      NormGradient(NormGradientRow<T>{dy + i * n,
                                      x + i * n,
                                      gamma,
                                      dx + i * n,
                                      dgamma,
                                      dbeta,
                                      static_cast<size_t>(n),
                                      {mean ? mean[i] : 0, scale[i]},
                                      mean != nullptr});
  };
  const int threads = rows_.Threads(8.0, threads_);
  if (parts_ == 0) {
    ParallelParts({rows_.count, 1, threads},
                  [&](int, int64_t begin, int64_t end) { rows(begin, end, nullptr, nullptr); });
    return absl::OkStatus();
  }
  ParallelParts({parts, 1, threads}, [&](int, int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      T* mine = std::fill_n(sums + 2 * p * n, 2 * n, T{0}) - 2 * n;
      rows(p * share, std::min(rows_.count, (p + 1) * share), mine, mine + n);
    }
  });
  const auto add = RowLoopsOf<T>().combine[static_cast<size_t>(ir::ReduceKind::kSum)];
  for (int64_t p = 1; p < parts; ++p) add(sums, sums + 2 * p * n, static_cast<size_t>(2 * n));
  for (size_t i = 0; i < 2; ++i)
    std::copy_n(sums + static_cast<int64_t>(i) * n, n, reinterpret_cast<T*>(a.more[i]));
  return absl::OkStatus();
}

// Operand i of the node, along the axes of a row.
Affine AffineOf(const AnchorSite& site, size_t i, std::vector<int64_t> row) {
  const ir::Node& node = *site.task.anchor();
  if (i >= node.in.size() || node.in[i] == ir::kAbsent) return {};
  Affine f{site.task.OperandOf(node.in[i]), std::move(row), {}};
  const View& v = site.operands[*f.operand];
  f.strides.assign(f.row.size(), 0);
  const size_t skipped = f.row.size() - v.shape.size();
  for (size_t a = 0; a < v.shape.size(); ++a)
    if (v.shape[a] != 1) f.strides[skipped + a] = v.strides[a];
  return f;
}

absl::StatusOr<MadeAnchor> MakeLayerNorm(const AnchorSite& site) {
  const ir::Node& node = *site.task.anchor();
  const auto& op = *node.op.As<ir::LayerNorm>();
  const uint32_t operand = *site.task.OperandOf(node.in[0]);
  const View& x = site.operands[operand];
  if (!IsDense(x) || !IsDense(site.out))
    return Unimplemented("layer_norm does not support permuted axes");
  FORGE_ASSIGN_OR_RETURN(const Rows rows, RowsOf(x, op.axis));
  std::array<Affine, 2> affine = {AffineOf(site, 1, rows.row), AffineOf(site, 2, rows.row)};
  const auto make = [&]<class T>(T) -> std::unique_ptr<AnchorCall> {
    return std::make_unique<LayerNormCall<T>>(op, rows, operand, std::move(affine),
                                              site.settings.threads);
  };
  return MadeAnchor{x.dtype == DType::kF64 ? make(double{}) : make(float{}), node.first_out};
}

absl::StatusOr<MadeAnchor> MakeGradient(const AnchorSite& site) {
  const ir::Node& node = *site.task.anchor();
  std::array<std::optional<uint32_t>, 4> operands;
  for (size_t i = 0; i < operands.size() && i < node.in.size(); ++i) {
    if (node.in[i] == ir::kAbsent) continue;
    operands[i] = *site.task.OperandOf(node.in[i]);
    if (!IsDense(site.operands[*operands[i]]))
      return Unimplemented("layer_norm_gradient does not support permuted axes");
  }
  if (!IsDense(site.out)) return Unimplemented("layer_norm_gradient stores no permuted axes");
  const View& x = site.operands[*operands[ir::LayerNormGradient::kX]];
  const auto& op = *node.op.As<ir::LayerNormGradient>();
  FORGE_ASSIGN_OR_RETURN(const Rows rows, RowsOf(x, op.axis));
  const Affine gamma = AffineOf(site, ir::LayerNormGradient::kGamma, rows.row);
  const auto make = [&]<class T>(T) -> std::unique_ptr<AnchorCall> {
    return std::make_unique<GradientCall<T>>(rows, operands, gamma, op.columns,
                                             site.settings.threads);
  };
  return MadeAnchor{x.dtype == DType::kF64 ? make(double{}) : make(float{}), node.first_out};
}

}  // namespace

const Kernel& LayerNormKernel() {
  static const FloatKernel<ir::LayerNorm> kKernel(&MakeLayerNorm);
  return kKernel;
}
const Kernel& LayerNormGradientKernel() {
  static const FloatKernel<ir::LayerNormGradient> kKernel(&MakeGradient);
  return kKernel;
}

}  // namespace forge::cpu
