// SPDX-License-Identifier: Apache-2.0
// The formulas of Lower().
#pragma once
#include "codegen/kernel_ir.h"

namespace forge::codegen {

struct LowerRules {
  Builder& b;
  const Caps& caps;

  // What `i`, with operands `x`, becomes; nothing when it stays.
  Val Apply(const Inst& i, const Type& type, std::span<const Val> x) const;

  Val IsNan(Val x) const;
  Val Extreme(Code code, Val a, Val b) const;  // Min or Max of floats
  Val Convert(Val x, const Type& to) const;    // nothing when SPIR-V's will do
  Val Converted(Val x, const Type& to) const;
  Val FloatToInt(Val x, const Type& to) const;  // 32 bits or more
  Val SubgroupExtreme(const Inst& i, Val x) const;
  Val Dot4(DotKind kind, std::span<const Val> x) const;
};

}  // namespace forge::codegen
