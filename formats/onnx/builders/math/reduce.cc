// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/reduction/reduce.h"

#include "formats/onnx/builders/families.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/reduction/log_sum_exp.h"

namespace forge::formats {
namespace {

// What the node says of axes: an attribute first and an operand later; the table's entries differ
// in their operands. Attributes are asked for once.
class Reduction {
 public:
  explicit Reduction(OnnxNode& n)
      : n_(n),
        axes_(n.Ints("axes")),
        keep_dims_(n.Flag("keepdims", true)),
        all_by_default_(!n.Flag("noop_with_empty_axes")) {}

  ir::Value Of(ir::ReduceKind kind, ir::Value x) const {
    return Add(ir::Reduce{.kind = kind, .axes = axes_, .keep_dims = keep_dims_}, x);
  }
  ir::Value LogSumExp(ir::Value x) const {
    return Add(ir::LogSumExp{.axes = axes_, .keep_dims = keep_dims_}, x);
  }

 private:
  // Of no axes the sum is the operand, and log(sum(exp(x))) is, too.
  template <class Op>
  ir::Value Add(Op op, ir::Value x) const {
    if (n_.HasInput(1)) {
      const std::optional<std::vector<int64_t>> axes = n_.ConstantInts(1);
      const ir::Function::RuntimeField runtime[] = {{"axes", n_.in(1)}};
      if (!axes && !all_by_default_) {
        n_.Fail("its axes are not known before the model runs");
        return x;
      }
      if (!axes) return n_.fn().AddRuntimeValued(op, std::array{x}, runtime)[0];
      op.axes = *axes;
    }
    return op.axes.empty() && !all_by_default_ ? x : n_.fn()(op, {x});
  }

  OnnxNode& n_;
  const std::vector<int64_t> axes_;
  const bool keep_dims_, all_by_default_;
};

ir::Values Reduce(OnnxNode& n, ir::ReduceKind kind) {
  const ir::Value x = n.in(0);
  if (x.type().dtype() != DType::kBool) return {Reduction(n).Of(kind, x)};
  return {ir::convert(Reduction(n).Of(kind, ir::convert(x, DType::kU8)), DType::kBool)};
}

// The sum of what `term` makes of the elements; narrow floats are widened first, and the sum
// narrowed after `finish`.
ir::Values SumOf(OnnxNode& n, ir::Value (*term)(ir::Value), ir::Value (*finish)(ir::Value)) {
  const ir::Value x = n.in(0);
  const ir::Value sum = Reduction(n).Of(ir::ReduceKind::kSum, term(ir::Widened(x)));
  return {ir::Narrowed(finish(sum), x.type().dtype())};
}

ir::Value Same(ir::Value x) { return x; }
ir::Value Square(ir::Value x) { return x * x; }

ir::Values GlobalPool(OnnxNode& n, ir::ReduceKind kind) {
  const ir::Type& type = n.type(0);
  if (!type.is_tensor() || type.rank() < 3) {
    n.Fail("{} has no spatial axes", type.ToText());
    return {};
  }
  ir::Reduce op{.kind = kind};
  for (int64_t axis = 2; axis < type.rank(); ++axis) op.axes.push_back(axis);
  return {n.fn()(op, {n.in(0)})};
}

ir::Values BuildGlobalAveragePool(OnnxNode& n) { return GlobalPool(n, ir::ReduceKind::kMean); }
ir::Values BuildGlobalMaxPool(OnnxNode& n) { return GlobalPool(n, ir::ReduceKind::kMax); }
ir::Values BuildReduceMax(OnnxNode& n) { return Reduce(n, ir::ReduceKind::kMax); }
ir::Values BuildReduceMin(OnnxNode& n) { return Reduce(n, ir::ReduceKind::kMin); }
ir::Values BuildReduceProd(OnnxNode& n) { return Reduce(n, ir::ReduceKind::kProd); }
ir::Values BuildReduceL1(OnnxNode& n) { return SumOf(n, &ir::abs, &Same); }
ir::Values BuildReduceL2(OnnxNode& n) { return SumOf(n, &Square, &ir::sqrt); }
ir::Values BuildReduceSumSquare(OnnxNode& n) { return SumOf(n, &Square, &Same); }
ir::Values BuildReduceLogSum(OnnxNode& n) { return SumOf(n, &Same, &ir::log); }

ir::Values BuildReduceLogSumExp(OnnxNode& n) { return {Reduction(n).LogSumExp(n.in(0))}; }
ir::Values BuildReduceMean(OnnxNode& n) { return Reduce(n, ir::ReduceKind::kMean); }
ir::Values BuildReduceSum(OnnxNode& n) { return Reduce(n, ir::ReduceKind::kSum); }

constexpr OnnxOp kReduceOps[] = {
    {"", "GlobalAveragePool", 1, 1, 1, BuildGlobalAveragePool},
    {"", "GlobalMaxPool", 1, 1, 1, BuildGlobalMaxPool},
    {"", "ReduceL1", 1, 1, 1, BuildReduceL1},
    {"", "ReduceL1", 18, 1, 2, BuildReduceL1},
    {"", "ReduceL2", 1, 1, 1, BuildReduceL2},
    {"", "ReduceL2", 18, 1, 2, BuildReduceL2},
    {"", "ReduceLogSum", 1, 1, 1, BuildReduceLogSum},
    {"", "ReduceLogSum", 18, 1, 2, BuildReduceLogSum},
    {"", "ReduceLogSumExp", 1, 1, 1, BuildReduceLogSumExp},
    {"", "ReduceLogSumExp", 18, 1, 2, BuildReduceLogSumExp},
    {"", "ReduceMax", 1, 1, 1, BuildReduceMax},
    {"", "ReduceMax", 18, 1, 2, BuildReduceMax},
    {"", "ReduceMean", 1, 1, 1, BuildReduceMean},
    {"", "ReduceMean", 18, 1, 2, BuildReduceMean},
    {"", "ReduceMin", 1, 1, 1, BuildReduceMin},
    {"", "ReduceMin", 18, 1, 2, BuildReduceMin},
    {"", "ReduceProd", 1, 1, 1, BuildReduceProd},
    {"", "ReduceProd", 18, 1, 2, BuildReduceProd},
    {"", "ReduceSum", 1, 1, 1, BuildReduceSum},
    {"", "ReduceSum", 13, 1, 2, BuildReduceSum},
    {"", "ReduceSumSquare", 1, 1, 1, BuildReduceSumSquare},
    {"", "ReduceSumSquare", 18, 1, 2, BuildReduceSumSquare},
};

}  // namespace

std::span<const OnnxOp> ReduceOps() { return kReduceOps; }

}  // namespace forge::formats
