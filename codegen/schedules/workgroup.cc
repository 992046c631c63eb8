// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/workgroup.h"

namespace forge::codegen {

WorkgroupTree::WorkgroupTree(Emission& m, Type element)
    : m_(m),
      view_(m.b.AddView({.name = "partial",
                         .space = Space::kShared,
                         .elem = element,
                         .extent = m.launch.kernel.workgroup[0],
                         .reads = true,
                         .writes = true})) {}

Val WorkgroupTree::Combine(Val mine, absl::FunctionRef<Val(Val, Val)> combine) {
  Builder& b = m_.b;
  Val local = b.Builtin(BuiltinKind::kLocalX);
  b.Store(view_, local, mine);
  b.Barrier();
  for (uint32_t half = m_.launch.kernel.workgroup[0] / 2; half > 0; half /= 2) {
    b.If(local < half, [&] {
      Val other = b.Load(view_, local + half);
      b.Store(view_, local, combine(b.Load(view_, local), other));
    });
    b.Barrier();
  }
  Val all = b.Load(view_, b.Int(0));
  b.Barrier();  // the next tree may overwrite it
  return all;
}

}  // namespace forge::codegen
