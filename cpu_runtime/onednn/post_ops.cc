// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/onednn/post_ops.h"

#include "ir/ops/elementwise/elementwise.h"

namespace forge::cpu {
namespace {

class Planner {
 public:
  Planner(const Task& task, uint32_t value) : task_(task) { plan_.value = value; }

  PostOps Plan(int most) {
    while (plan_.ops.len() < most && Next()) {
    }
    return std::move(plan_);
  }

 private:
  // Appends what the only reader of the value does; false where the chain ends.
  bool Next() {
    if (task_.UsesOf(plan_.value) != 1) return false;
    const ir::Type& type = task_.body().type(plan_.value);
    for (const ir::Node& node : task_.body().nodes()) {
      for (size_t i = 0; i < node.in.size(); ++i) {
        if (node.in[i] != plan_.value) continue;
        const ir::Type& out = task_.body().type(node.first_out);
        const bool same = out.dtype() == DType::kF32 && out.shape() == type.shape();
        if (!same || !Append(node, i)) return false;
        plan_.value = node.first_out;
        return true;
      }
    }
    return false;
  }

  bool Append(const ir::Node& node, size_t position) {
    if (AppendActivation(node.op)) return true;
    if (node.in.size() != 2) return false;
    const uint32_t other = node.in[1 - position];
    if (const std::optional<Number> c = task_.LiteralOf(other))
      return AppendLinear(node.op, c->f32(), position == 0);
    return AppendBinary(node.op, other, position == 0);
  }

  bool AppendActivation(const ir::AnyOp& op) {
    using Algorithm = dnnl::algorithm;
    if (op.Is<ir::HardSwish>())
      plan_.ops.append_eltwise(Algorithm::eltwise_hardswish, 1.0f / 6, 0.5f);
    else if (op.Is<ir::Silu>())
      plan_.ops.append_eltwise(Algorithm::eltwise_swish, 1, 0);
    else if (const auto* gelu = op.As<ir::Gelu>(); gelu && gelu->tanh_form)
      plan_.ops.append_eltwise(Algorithm::eltwise_gelu_tanh, 0, 0);
    else
      return false;
    return true;
  }

  bool AppendLinear(const ir::AnyOp& op, float c, bool first) {
    const auto linear = dnnl::algorithm::eltwise_linear;
    if (op.Is<ir::Mul>())
      plan_.ops.append_eltwise(linear, c, 0);
    else if (op.Is<ir::Add>())
      plan_.ops.append_eltwise(linear, 1, c);
    else if (op.Is<ir::Sub>())
      plan_.ops.append_eltwise(linear, first ? 1 : -1, first ? -c : c);
    else
      return false;
    return true;
  }

  bool AppendBinary(const ir::AnyOp& op, uint32_t other, bool first) {
    const std::optional<uint32_t> operand = task_.OperandOf(other);
    if (!operand) return false;
    const auto algorithm = BinaryOf(op, first);
    const absl::StatusOr<View> view = task_.ViewOfOperand(*operand);
    if (algorithm == dnnl::algorithm::undef || !view.ok() || view->dtype != DType::kF32)
      return false;
    const auto rank = static_cast<size_t>(task_.body().type(plan_.value).rank());
    View padded = *view;
    // Axes of extent 1 in front; their stride means nothing but must not be less than the others.
    const int64_t stride = std::max<int64_t>(view->limit(), 1);
    padded.shape.insert(padded.shape.begin(), rank - padded.shape.size(), 1);
    padded.strides.insert(padded.strides.begin(), rank - padded.strides.size(), stride);
    const dnnl::memory::desc desc = DescOf(padded);
    plan_.operands.push_back({plan_.ops.len(), {*operand, desc}});
    plan_.ops.append_binary(algorithm, desc);
    return true;
  }

  static dnnl::algorithm BinaryOf(const ir::AnyOp& op, bool first) {
    if (op.Is<ir::Add>()) return dnnl::algorithm::binary_add;
    if (op.Is<ir::Mul>()) return dnnl::algorithm::binary_mul;
    if (op.Is<ir::Sub>() && first) return dnnl::algorithm::binary_sub;
    if (op.Is<ir::Div>() && first) return dnnl::algorithm::binary_div;
    return dnnl::algorithm::undef;
  }

  const Task& task_;
  PostOps plan_;
};

}  // namespace

PostOps PlanPostOps(const Task& task, uint32_t value, int most) {
  if (task.body().type(value).dtype() == DType::kF32) return Planner(task, value).Plan(most);
  return {.value = value};
}

}  // namespace forge::cpu
