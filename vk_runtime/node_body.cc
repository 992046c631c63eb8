// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/node_body.h"

#include "ir/ops/fused.h"

namespace forge::vk {
namespace {

absl::StatusOr<NodeBody> FusedBody(const ir::Function& body, ir::TypeSpan in, ir::TypeSpan out) {
  if (body.arguments().size() != in.size() || body.results().size() != out.size())
    return Internal("a fused body of {} arguments and {} results stands in a node of {} and {}",
                    body.arguments().size(), body.results().size(), in.size(), out.size());
  NodeBody b;
  b.function = &body;
  for (uint32_t i = 0; i < in.size() + out.size(); ++i) b.step_operand.push_back(i);
  return b;
}

}  // namespace

absl::StatusOr<NodeBody> BodyOf(const ir::AnyOp& op, ir::TypeSpan in, ir::TypeSpan out) {
  if (const auto* fused = op.As<ir::Fused>()) return FusedBody(*fused->body, in, out);
  NodeBody b;
  b.own = std::make_unique<ir::Function>(std::string(op.name()));
  ir::Values operands;
  for (uint32_t i = 0; i < in.size(); ++i) {
    operands.push_back(in[i] ? b.own->Argument(fmt::format("x{}", i), in[i]) : ir::Value{});
    if (in[i]) b.step_operand.push_back(i);
  }
  const ir::Values results = b.own->Add(op, operands);
  FORGE_RETURN_IF_ERROR(b.own->status());
  if (results.size() != out.size())
    return Internal("{} has {} results, its node {}", op.name(), results.size(), out.size());
  for (uint32_t i = 0; i < results.size(); ++i) {
    if (!out[i]) continue;
    b.own->Return(fmt::format("y{}", i), results[i]);
    b.step_operand.push_back(static_cast<uint32_t>(in.size()) + i);
  }
  b.function = b.own.get();
  return b;
}

}  // namespace forge::vk
