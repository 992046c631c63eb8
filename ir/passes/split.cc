// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/copier.h"
#include "ir/ops/compiler/fused.h"
#include "ir/passes/passes.h"

namespace forge::ir {
namespace {

Types ResultTypes(const Function& f, const Node& node) {
  Types out;
  for (uint16_t k = 0; k < node.outs; ++k) out.push_back(f.type(node.first_out + k));
  return out;
}

}  // namespace

absl::Status Split(Module& m, const Function& in, Function& out, const Target& target) {
  Copier copy(in, out);
  copy.CopyArguments();
  for (const Node& node : in.nodes()) {
    const auto* fused = node.op.As<Fused>();
    const Types operands = in.TypesOf(node.in), results = ResultTypes(in, node);
    if (fused == nullptr || target.Supports({node.op, operands, results})) {
      copy.CopyNode(node);
      continue;
    }
    Function parts(fused->body->name(), &m);
    FORGE_RETURN_IF_ERROR(Fuse(m, *fused->body, parts, target).status());
    const Values made = Inline(parts, out, copy.Operands(node.in));
    FORGE_RETURN_IF_ERROR(out.status());
    for (uint16_t k = 0; k < node.outs; ++k) copy.Map(node.first_out + k, made[k]);
  }
  return copy.Finish();
}

}  // namespace forge::ir
