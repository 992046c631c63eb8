// SPDX-License-Identifier: Apache-2.0
#include "tools/support/bodies.h"

#include "absl/container/flat_hash_set.h"
#include "ir/attributes.h"

namespace forge::tools {
namespace {

void Collect(const ir::Function& f, absl::flat_hash_set<const ir::Function*>& seen,
             std::vector<const ir::Function*>& out) {
  for (const ir::Node& n : f.nodes())
    for (const ir::Function* body : BodiesOf(n)) {
      if (!seen.insert(body).second) continue;
      out.push_back(body);
      Collect(*body, seen, out);
    }
}

}  // namespace

std::vector<const ir::Function*> BodiesOf(const ir::Node& node) {
  std::vector<const ir::Function*> out;
  for (const Field& f : node.op.def().fields) {
    if (f.kind != FieldKind::kFunction) continue;
    if (const auto* body = std::get<ir::Function*>(ir::GetAttribute(f, node.op.self())))
      out.push_back(body);
  }
  return out;
}

std::vector<const ir::Function*> BodiesUnder(const ir::Function& f) {
  absl::flat_hash_set<const ir::Function*> seen;
  std::vector<const ir::Function*> out;
  Collect(f, seen, out);
  return out;
}

}  // namespace forge::tools
