// SPDX-License-Identifier: Apache-2.0
// The formulas of Lower().
#pragma once
#include "codegen/kernel_ir.h"

namespace forge::codegen {

// A value of the kernel being lowered: itself, or the halves of 64-bit integers on devices without
// them, two u32s.
struct Wide {
  Val lo, hi;  // hi is absent where the value is whole
};
// The view that stands for one of 64-bit integers: of u32x2 for one, of u32x4 for two or four.
View HalvesView(View v);
// Whether all operations have a form in halves: products' high parts and reductions over subgroups
// do not.
bool HasHalves(const Kernel& k);

// The views that stand for those of f32 which a device cannot do the atomics of: of u32, so that
// they can be compared and exchanged.
void MakeExchangeable(const Kernel& k, const Caps& caps, std::vector<View>& views);

struct LowerRules {
  Builder& b;
  const Caps& caps;

  // What `i`, with operands `x`, becomes (any value where it has no result); nothing when it stays.
  Val Apply(const Inst& i, const Type& type, std::span<const Val> x) const;
  // As Builder::Add; a load, store or atomic of a view of several parts is done to the one that has
  // the element.
  Val Add(const Inst& i, const Type& type, std::span<const Val> x) const;
  // An instruction whose result or operand is a 64-bit integer; `from`: its first operand's type.
  struct WideInst {
    const Inst& i;
    Type type, from;
  };
  // What it becomes in halves.
  Wide Apply(const WideInst& w, std::span<const Wide> x) const;

 private:
  struct PartRange {
    int begin, end;
  };
  Val AddAmong(PartRange parts, const Inst& i, const Type& type, std::span<const Val> x) const;
};

// Vulkan lets a device assume that there are no NaNs, unless it is told to keep them.
Val IsNan(const Caps& caps, Val x);

}  // namespace forge::codegen
