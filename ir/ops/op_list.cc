// SPDX-License-Identifier: Apache-2.0
// Names every op and includes none: an edit to one op recompiles that op.
#include "ir/op/op.h"

namespace forge::ir {

#define FORGE_OP(T) \
  struct T;         \
  const OpDef& DefOf(const T*);
#include "ir/ops/op_list.inc"
#undef FORGE_OP

std::span<const OpDef* const> AllOps() {
  static const OpDef* const kAll[] = {
#define FORGE_OP(T) &DefOf<T>(),
#include "ir/ops/op_list.inc"
#undef FORGE_OP
  };
  return kAll;
}

const OpDef* FindOp(std::string_view name) {
  for (const OpDef* def : AllOps())
    if (def->info.name == name) return def;
  return nullptr;
}

}  // namespace forge::ir
