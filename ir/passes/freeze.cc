// SPDX-License-Identifier: Apache-2.0
#include "ir/passes/passes.h"

namespace forge::ir {

void Freeze(Module& m) {
  for (const auto& v : m.variables()) {
    if (v->role != Variable::Role::kParameter) continue;
    v->role = Variable::Role::kConstant;
    v->trainable = false;
  }
}

}  // namespace forge::ir
