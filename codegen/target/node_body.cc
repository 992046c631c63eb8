// SPDX-License-Identifier: Apache-2.0
#include "codegen/target/node_body.h"

#include <algorithm>

#include "ir/graph/copier.h"
#include "ir/ops/compiler/fused.h"

namespace forge::codegen {
namespace {

absl::StatusOr<std::unique_ptr<ir::Function>> FunctionAround(const ir::Candidate& node) {
  auto f = std::make_unique<ir::Function>(std::string(node.op.name()));
  ir::Values operands;
  for (const ir::Type& t : node.in)
    operands.push_back(t ? f->Argument(fmt::format("x{}", operands.size()), t) : ir::Value{});
  const ir::Values results = f->Add(node.op, operands);
  FORGE_RETURN_IF_ERROR(f->status());
  if (results.size() != node.out.size())
    return Internal("{} has {} results, its node {}", node.op.name(), results.size(),
                    node.out.size());
  for (size_t i = 0; i < results.size(); ++i)
    if (node.out[i]) f->Return(fmt::format("y{}", i), results[i]);
  return f;
}

// The body of a fused node whose operands lie otherwise than the body says.
absl::StatusOr<std::unique_ptr<ir::Function>> WithEncodings(const ir::Function& body,
                                                            ir::TypeSpan in) {
  auto f = std::make_unique<ir::Function>(body.name());
  ir::Copier copy(body, *f);
  copy.CopyArguments();
  for (size_t i = 0; i < in.size(); ++i)
    f->SetEncoding(copy[body.arguments()[i].value], in[i].encoding());
  for (const ir::Node& node : body.nodes()) copy.CopyNode(node);
  FORGE_RETURN_IF_ERROR(copy.Finish());
  return f;
}

bool HasEncodings(ir::TypeSpan types) {
  return std::any_of(types.begin(), types.end(),
                     [](const ir::Type& t) { return t.encoding() != nullptr; });
}

}  // namespace

absl::StatusOr<NodeBody> BodyOf(const ir::Candidate& node, const Caps& caps) {
  const size_t in = node.in.size(), out = node.out.size();
  NodeBody b;
  if (const auto* fused = node.op.As<ir::Fused>()) {
    b.function = fused->body;
    const size_t arguments = b.function->arguments().size(), results = b.function->results().size();
    if (arguments != in || results != out)
      return Internal("a fused body of {} arguments and {} results stands in a node of {} and {}",
                      arguments, results, in, out);
    if (HasEncodings(node.in)) {
      FORGE_ASSIGN_OR_RETURN(b.own, WithEncodings(*fused->body, node.in));
      b.function = b.own.get();
    }
  } else {
    FORGE_ASSIGN_OR_RETURN(b.own, FunctionAround(node));
    b.function = b.own.get();
  }
  for (uint32_t i = 0; i < in + out; ++i)
    if (!b.own || (i < in ? node.in[i] : node.out[i - in])) b.step_operand.push_back(i);
  FORGE_ASSIGN_OR_RETURN(b.region, Region::Of(*b.function, caps));
  return b;
}

}  // namespace forge::codegen
