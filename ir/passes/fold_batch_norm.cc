// SPDX-License-Identifier: Apache-2.0
#include "ir/passes/fold_batch_norm.h"

#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/norm/batch_norm.h"
#include "ir/ops/spatial/conv.h"

namespace forge::ir {
namespace {

bool IsConstant(Value v) {
  const Variable* c = v ? v.fn->VariableOf(v.id) : nullptr;
  return c && c->role == Variable::Role::kConstant;
}

// The convolution that makes `v`, with constant weights and bias; null otherwise.
const Node* ConvBefore(const Function& f, Value v) {
  const auto& origin = f.origin(v.id);
  if (origin.kind != Function::Origin::kNode) return nullptr;
  const Node& node = f.nodes()[origin.index];
  if (!node.op.Is<Conv>()) return nullptr;
  auto constant = [&](uint32_t id) {
    const Variable* c = f.VariableOf(id);
    return c && c->role == Variable::Role::kConstant;
  };
  if (!constant(node.in[1])) return nullptr;
  const bool has_bias = node.in.size() > 2 && node.in[2] != kAbsent;
  return !has_bias || constant(node.in[2]) ? &node : nullptr;
}

}  // namespace

absl::Status FoldBatchNorms(const Function& in, Function& out) {
  const std::vector<int> uses = in.UseCounts();
  auto rule = [&](Function& f, const Node& node, ValueSpan operands) -> std::optional<Values> {
    const BatchNorm* norm = node.op.As<BatchNorm>();
    if (norm == nullptr || (norm->axis != 1 && norm->axis != -3) || uses[node.in[0]] != 1)
      return std::nullopt;
    for (size_t i = 1; i < operands.size(); ++i)
      if (!IsConstant(operands[i])) return std::nullopt;
    const Node* conv = ConvBefore(f, operands[0]);
    if (conv == nullptr) return std::nullopt;
    const std::array from = {conv->from, node.from};
    const Function::Scope scope(f, MadeBy("fold", from));
    const Value w = f.value(conv->in[1]);
    const bool has_bias = conv->in.size() > 2 && conv->in[2] != kAbsent;
    const Value bias = has_bias ? f.value(conv->in[2]) : Value{};
    const Value scale = operands[1] / sqrt(operands[4] + norm->epsilon);
    const Value shift = bias ? bias - operands[3] : -operands[3];
    Dims of_channels(w.type().shape().size(), 1);
    of_channels[0] = w.type().shape()[0];
    const Value scaled = w * f(Reshape{.shape = std::move(of_channels)}, {scale});
    return f.Add(conv->op, std::array{f.value(conv->in[0]), scaled, operands[2] + shift * scale});
  };
  Function joined(in.name(), in.module());
  FORGE_RETURN_IF_ERROR((Rewriter{.pass = "fold"}.Run(in, joined, rule)));
  // The convolutions that were replaced are now read by nobody.
  return Rewriter{.pass = "fold"}.Run(joined, out);
}

}  // namespace forge::ir
