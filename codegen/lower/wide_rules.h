// SPDX-License-Identifier: Apache-2.0
// Emulation of 64-bit integers by two 32-bit halves.
#pragma once
#include "codegen/lower/vulkan_rules.h"

namespace forge::codegen {

// A value of the kernel being lowered: unchanged, or the halves of a 64-bit integer, two u32s.
struct Wide {
  Val lo, hi;  // hi is absent for an unchanged value
};
// Returns the view that replaces one of 64-bit integers: of u32x2 for scalars, of u32x4 for vectors
// of two or four.
View HalvesView(View v);

// An instruction whose result or operand is a 64-bit integer; `from`: its first operand's type.
struct WideInst {
  const Inst& i;
  Type type, from;
};
// Returns its expansion; `memory` performs loads and stores.
Wide WideRule(const VulkanRules& memory, const WideInst& w, std::span<const Wide> x);

}  // namespace forge::codegen
