// SPDX-License-Identifier: Apache-2.0
// Reductions in every number type. Not the library's: its max and min lose NaN and it has no f64.
#include "ir/ops/reduction/reduce.h"

#include <algorithm>
#include <cstring>

#include "cpu_runtime/kernels/kernel.h"
#include "cpu_runtime/parallel.h"
#include "cpu_runtime/rows/row_loops.h"
#include "ir/op/axes.h"

namespace forge::cpu {
namespace {

// Steps through the indices of some axes, keeping an address.
struct Axis {
  int64_t extent, from, to;  // elements between neighbours in the operand and in the result
};

class Walk {
 public:
  explicit Walk(std::span<const Axis> axes) : axes_(axes) {}
  int64_t count() const {
    int64_t n = 1;
    for (const Axis& a : axes_) n *= a.extent;
    return n;
  }
  struct Place {
    int64_t from = 0, to = 0;
  };
  Place At(int64_t flat) const {
    Place p;
    for (size_t i = axes_.size(); i-- > 0; flat /= axes_[i].extent) {
      p.from += flat % axes_[i].extent * axes_[i].from;
      p.to += flat % axes_[i].extent * axes_[i].to;
    }
    return p;
  }

 private:
  std::span<const Axis> axes_;
};

// A reduction as loops: over what is kept, over what is reduced, and over the innermost axis of the
// operand, which is either.
struct Nest {
  std::vector<Axis> kept, reduced;
  Axis inner{1, 1, 1};
  bool inner_is_reduced = true;
  double count = 1;  // elements that make one of the result
};

// to: the strides of the result along each axis of the operand, 0 where it is reduced
Nest NestOf(const View& x, std::span<const bool> is_reduced, std::span<const int64_t> to) {
  Nest nest;
  struct Labelled {
    Axis axis;
    bool reduced;
  };
  std::vector<Labelled> axes;
  for (size_t a : MemoryOrder(x)) {
    if (is_reduced[a]) nest.count *= static_cast<double>(x.shape[a]);
    if (x.shape[a] == 1) continue;
    const Axis axis{x.shape[a], x.strides[a], to[a]};
    if (!axes.empty() && axes.back().reduced == is_reduced[a] &&
        axes.back().axis.from == axis.from * axis.extent &&
        axes.back().axis.to == axis.to * axis.extent)
      axes.back().axis = {axes.back().axis.extent * axis.extent, axis.from, axis.to};
    else
      axes.push_back({axis, is_reduced[a]});
  }
  if (!axes.empty()) {
    nest.inner = axes.back().axis;
    nest.inner_is_reduced = axes.back().reduced;
    axes.pop_back();
  }
  for (const Labelled& l : axes) (l.reduced ? nest.reduced : nest.kept).push_back(l.axis);
  return nest;
}

template <class T>
class ReduceCall final : public AnchorCall {
 public:
  ReduceCall(Nest nest, ir::ReduceKind kind, uint32_t operand, int threads)
      : nest_(std::move(nest)), kind_(kind), operand_(operand), threads_(threads) {}
  std::string_view kernel() const override { return "reduce"; }

  absl::Status Run(const Arguments& a) const override {
    const auto* x = reinterpret_cast<const T*>(a.operands[operand_]);
    auto* y = reinterpret_cast<T*>(a.out);
    const Walk kept(nest_.kept);
    const int64_t reduced = Walk(nest_.reduced).count() * nest_.inner.extent;
    const bool many = WorthThreads(static_cast<double>(kept.count() * reduced));
    // Columns are cut so that their running results stay in the first cache.
    const int64_t parts = nest_.inner_is_reduced ? 1 : (nest_.inner.extent + kPart - 1) / kPart;
    ParallelParts({kept.count() * parts, 1, many ? threads_ : 1},
                  [&](int, int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      const Walk::Place at = kept.At(i / parts);
                      if (nest_.inner_is_reduced)
                        y[at.to] = Finish(Along(x + at.from));
                      else
                        Across(x + at.from, y + at.to, i % parts * kPart);
                    }
                  });
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kPart = 512;

  T Finish(T sum) const {
    if constexpr (std::is_floating_point_v<T>)
      if (kind_ == ir::ReduceKind::kMean) return sum / static_cast<T>(nest_.count);
    return sum;
  }

  T Along(const T* x) const {
    const auto fold = RowLoopsOf<T>().fold[static_cast<size_t>(kind_)];
    const Walk walk(nest_.reduced);
    const auto n = static_cast<size_t>(nest_.inner.extent);
    T sum = StartOf<T>(kind_);
    for (int64_t i = 0, all = walk.count(); i < all; ++i) sum = fold(x + walk.At(i).from, n, sum);
    return sum;
  }

  void Across(const T* x, T* y, int64_t first) const {
    const auto combine = RowLoopsOf<T>().combine[static_cast<size_t>(kind_)];
    const auto n = static_cast<size_t>(std::min(kPart, nest_.inner.extent - first));
    const Walk walk(nest_.reduced);
    alignas(64) T sums[kPart];
    std::fill_n(sums, n, StartOf<T>(kind_));
    for (int64_t i = 0, all = walk.count(); i < all; ++i)
      combine(sums, x + walk.At(i).from + first, n);
    for (size_t i = 0; i < n; ++i)
      y[(first + static_cast<int64_t>(i)) * nest_.inner.to] = Finish(sums[i]);
  }

  Nest nest_;
  ir::ReduceKind kind_;
  uint32_t operand_;
  int threads_;
};

absl::StatusOr<MadeAnchor> MakeReduce(const AnchorSite& site) {
  const ir::Node& node = *site.task.anchor();
  const auto& op = *node.op.As<ir::Reduce>();
  const uint32_t operand = *site.task.OperandOf(node.in[0]);
  const View& x = site.operands[operand];
  std::vector<int64_t> axes = op.axes;
  if (axes.empty())
    for (size_t a = 0; a < x.shape.size(); ++a) axes.push_back(static_cast<int64_t>(a));
  FORGE_ASSIGN_OR_RETURN(axes, ir::NormalAxes(axes, static_cast<int64_t>(x.shape.size())));
  const auto is_reduced = std::make_unique<bool[]>(x.shape.size() + 1);
  for (int64_t a : axes) is_reduced[static_cast<size_t>(a)] = true;
  std::vector<int64_t> to(x.shape.size(), 0);
  for (size_t a = 0, out = 0; a < x.shape.size(); ++a) {
    if (!is_reduced[a]) to[a] = site.out.strides[out];
    out += !is_reduced[a] || op.keep_dims;
  }
  Nest nest = NestOf(x, {is_reduced.get(), x.shape.size()}, to);
  const auto make = [&]<class T>(T) -> absl::StatusOr<MadeAnchor> {
    return MadeAnchor{
        std::make_unique<ReduceCall<T>>(std::move(nest), op.kind, operand, site.settings.threads),
        node.first_out};
  };
  return WithNumberType(x.dtype, make);
}

class Reduce final : public Kernel {
 public:
  bool Knows(const Task& task) const override { return IsAnchoredBy<ir::Reduce>(task); }
  Verdict Takes(const Task& task) const override {
    const DType t = task.body().type(task.anchor()->first_out).dtype();
    if (!Has(kRealTypes, t))
      return Verdict::No(fmt::format("reduce has no kernel for {}", Name(t)));
    if (Verdict v = TakesEpilogue(task); !v) return v;
    return Verdict::Yes("reduce");
  }
  std::vector<ir::EncodingChoice> Encodings(const Task& task,
                                            const Settings& settings) const override {
    return BothLayouts(task, settings);
  }
  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    return MakeAnchorProgram(task, settings, MakeReduce);
  }
};

}  // namespace

const Kernel& ReduceKernel() {
  static const Reduce kKernel;
  return kKernel;
}

}  // namespace forge::cpu
