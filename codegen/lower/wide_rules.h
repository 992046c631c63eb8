// SPDX-License-Identifier: Apache-2.0
// 64-bit integers as two halves, on devices without them.
#pragma once
#include "codegen/lower/vulkan_rules.h"

namespace forge::codegen {

// A value of the kernel being lowered: itself, or the halves of a 64-bit integer, two u32s.
struct Wide {
  Val lo, hi;  // hi is absent where the value is whole
};
// The view that stands for one of 64-bit integers: of u32x2 for one, of u32x4 for two or four.
View HalvesView(View v);

// An instruction whose result or operand is a 64-bit integer; `from`: its first operand's type.
struct WideInst {
  const Inst& i;
  Type type, from;
};
// What it becomes in halves; memory is reached as `memory` says.
Wide WideRule(const VulkanRules& memory, const WideInst& w, std::span<const Wide> x);

}  // namespace forge::codegen
