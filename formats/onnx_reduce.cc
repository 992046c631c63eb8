// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx_builders.h"
#include "ir/ops/reduce.h"

namespace forge::formats {
namespace {

// `axes` is an attribute first and an operand later: the table's entries differ in their operands.
ir::Values Reduce(OnnxNode& n, ir::ReduceKind kind) {
  ir::Reduce op{.kind = kind, .axes = n.Ints("axes"), .keep_dims = n.Flag("keepdims", true)};
  const bool all_by_default = !n.Flag("noop_with_empty_axes");
  const std::array in = {n.in(0)};
  if (n.HasInput(1)) {
    const std::optional<std::vector<int64_t>> axes = n.ConstantInts(1);
    const ir::Function::LateField late[] = {{"axes", n.in(1)}};
    if (!axes) return n.fn().AddLate(op, in, late);
    op.axes = *axes;
  }
  if (op.axes.empty() && !all_by_default) return {n.in(0)};
  return n.fn().Add(op, in);
}

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

}  // namespace

ir::Values BuildGlobalAveragePool(OnnxNode& n) { return GlobalPool(n, ir::ReduceKind::kMean); }
ir::Values BuildGlobalMaxPool(OnnxNode& n) { return GlobalPool(n, ir::ReduceKind::kMax); }
ir::Values BuildReduceMax(OnnxNode& n) { return Reduce(n, ir::ReduceKind::kMax); }
ir::Values BuildReduceMean(OnnxNode& n) { return Reduce(n, ir::ReduceKind::kMean); }
ir::Values BuildReduceSum(OnnxNode& n) { return Reduce(n, ir::ReduceKind::kSum); }

}  // namespace forge::formats
