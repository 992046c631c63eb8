// SPDX-License-Identifier: Apache-2.0
// Layer norm in floats, each row in one go while it is in the first cache.
#include "ir/ops/norm/layer_norm.h"

#include "cpu_runtime/kernels/kernel.h"
#include "cpu_runtime/parallel.h"
#include "cpu_runtime/rows/row_loops.h"
#include "ir/op/axes.h"

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
};

// Rows of gapless memory.
struct Rows {
  int64_t count, length;
  double epsilon;
  bool subtract_mean;
};

template <class T>
class LayerNormCall final : public AnchorCall {
 public:
  LayerNormCall(Rows rows, uint32_t x, std::array<Affine, 2> affine, int threads)
      : rows_(rows), x_(x), affine_(std::move(affine)), threads_(threads) {}
  std::string_view kernel() const override { return "layer_norm"; }
  uint64_t scratch_bytes() const override {
    return affine_.size() * sizeof(T) * static_cast<uint64_t>(rows_.length);
  }

  absl::Status Run(const Arguments& a) const override {
    const auto* x = reinterpret_cast<const T*>(a.operands[x_]);
    auto* y = reinterpret_cast<T*>(a.out);
    const T* affine[2];
    for (size_t i = 0; i < affine_.size(); ++i)
      affine[i] = OneRow(affine_[i], a,
                         reinterpret_cast<T*>(a.scratch) + static_cast<int64_t>(i) * rows_.length);
    const double work = 6.0 * static_cast<double>(rows_.count * rows_.length);
    ParallelParts({rows_.count, 1, WorthThreads(work) ? threads_ : 1}, [&](int, int64_t begin,
                                                                           int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const RowStatistics<T> of_row = NormaliseRow(NormRow<T>{
            x + i * rows_.length, affine[0], affine[1], y + i * rows_.length,
            static_cast<size_t>(rows_.length), static_cast<T>(rows_.epsilon), rows_.subtract_mean});
        if (a.more.empty()) continue;
        reinterpret_cast<T*>(a.more[0])[i] = of_row.mean;
        reinterpret_cast<T*>(a.more[1])[i] = of_row.inverse_deviation;
      }
    });
    return absl::OkStatus();
  }

 private:
  const T* OneRow(const Affine& f, const Arguments& a, T* room) const {
    if (!f.operand) return nullptr;
    const auto* from = reinterpret_cast<const T*>(a.operands[*f.operand]);
    if (f.whole()) return from;
    for (int64_t i = 0; i < rows_.length; ++i) {
      int64_t at = 0, rest = i;
      for (size_t k = f.row.size(); k-- > 0; rest /= f.row[k]) at += rest % f.row[k] * f.strides[k];
      room[i] = from[at];
    }
    return room;
  }

  Rows rows_;
  uint32_t x_;
  std::array<Affine, 2> affine_;
  int threads_;
};

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
  FORGE_ASSIGN_OR_RETURN(const int64_t first,
                         ir::NormalAxis(op.axis, static_cast<int64_t>(x.shape.size())));
  const std::vector<int64_t> row(x.shape.begin() + first, x.shape.end());
  const std::vector<int64_t> outer(x.shape.begin(), x.shape.begin() + first);
  const int64_t length = DenseView(x.dtype, row).elements();
  const Rows rows{DenseView(x.dtype, outer).elements(), length, op.epsilon, op.subtract_mean};
  std::array<Affine, 2> affine = {AffineOf(site, 1, row), AffineOf(site, 2, row)};
  const auto make = [&]<class T>(T) -> std::unique_ptr<AnchorCall> {
    return std::make_unique<LayerNormCall<T>>(rows, operand, std::move(affine),
                                              site.settings.threads);
  };
  return MadeAnchor{x.dtype == DType::kF64 ? make(double{}) : make(float{}), node.first_out};
}

class LayerNorm final : public Kernel {
 public:
  bool Knows(const Task& task) const override { return IsAnchoredBy<ir::LayerNorm>(task); }
  Verdict Takes(const Task& task) const override {
    const DType t = task.body().type(task.anchor()->first_out).dtype();
    if (!Has(kFloatTypes, t))
      return Verdict::No(fmt::format("layer_norm has no kernel for {}", Name(t)));
    if (Verdict v = TakesEpilogue(task); !v) return v;
    return Verdict::Yes("layer_norm");
  }
  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    return MakeAnchorProgram(task, settings, MakeLayerNorm);
  }
};

}  // namespace

const Kernel& LayerNormKernel() {
  static const LayerNorm kKernel;
  return kKernel;
}

}  // namespace forge::cpu
