// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/task.h"

#include "ir/ops/compiler/fused.h"

namespace forge::cpu {

absl::StatusOr<Task> Task::Of(const ir::AnyOp& op, ir::TypeSpan in, ir::TypeSpan out) {
  Task t;
  t.types_.assign(in.begin(), in.end());
  t.first_result_ = in.size();
  t.types_.insert(t.types_.end(), out.begin(), out.end());
  if (const auto* fused = op.As<ir::Fused>()) {
    t.body_ = fused->body;
    for (uint32_t i = 0; i < in.size(); ++i) t.argument_operands_.push_back(i);
    FORGE_RETURN_IF_ERROR(t.Read());
    return t;
  }
  t.own_ = std::make_shared<ir::Function>(std::string(op.name()));
  ir::Values operands;
  for (uint32_t i = 0; i < in.size(); ++i) {
    operands.emplace_back();
    if (!in[i]) continue;
    operands.back() = t.own_->Argument(fmt::format("a{}", i), in[i]);
    t.argument_operands_.push_back(i);
  }
  const ir::Values results = t.own_->Add(op, operands);
  for (size_t i = 0; i < results.size(); ++i) t.own_->Return(fmt::format("r{}", i), results[i]);
  FORGE_RETURN_IF_ERROR(t.own_->status());
  t.body_ = t.own_.get();
  FORGE_RETURN_IF_ERROR(t.Read());
  return t;
}

absl::StatusOr<Task> Task::OfBody(const ir::Function& body) {
  Task t;
  t.body_ = &body;
  for (const auto& a : body.arguments()) {
    t.argument_operands_.push_back(static_cast<uint32_t>(t.types_.size()));
    t.types_.push_back(body.type(a.value));
  }
  t.first_result_ = t.types_.size();
  for (const auto& r : body.results()) t.types_.push_back(body.type(r.value));
  FORGE_RETURN_IF_ERROR(t.Read());
  return t;
}

absl::Status Task::Read() {
  uses_ = body_->UseCounts();
  for (const ir::Node& node : body_->nodes()) {
    const ir::OpDef& def = node.op.def();
    if (def.scalar || def.map) continue;
    anchor_ = &node;
    if (++anchors_ > 1)
      return Unimplemented("{} and another op are both anchors of the region", node.op.name());
  }
  if (body_->results().size() != results() ||
      body_->arguments().size() != argument_operands_.size())
    return Internal("region {} has {} operands and {} results, which do not match its node",
                    body_->name(), body_->arguments().size(), body_->results().size());
  return absl::OkStatus();
}

std::optional<uint32_t> Task::OperandOf(uint32_t value) const {
  const ir::Function::Origin& o = body_->origin(value);
  if (o.kind != ir::Function::Origin::kArgument) return std::nullopt;
  return argument_operands_[o.index];
}

std::optional<Number> Task::LiteralOf(uint32_t value) const {
  const ir::Function::Origin& o = body_->origin(value);
  if (o.kind != ir::Function::Origin::kNode) return std::nullopt;
  const ir::Node& node = body_->nodes()[o.index];
  if (!node.op.def().map || !node.in.empty()) return std::nullopt;
  const ir::Dims at(body_->type(value).shape().size(), ir::Dim(0));
  const ir::IndexMap map = node.op.Map({}, at);
  if (!map.pieces.empty()) return std::nullopt;
  return map.fill;
}

}  // namespace forge::cpu
