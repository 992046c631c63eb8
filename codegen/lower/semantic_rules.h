// SPDX-License-Identifier: Apache-2.0
// What instructions mean where a device's arithmetic means less: extremes and tests see NaN,
// conversions saturate, remainders take negative numbers, products with 0 keep NaN and signs, dot
// products are spelled out. Any printer needs them; memory is left alone.
#pragma once
#include "codegen/kernel/kernel_ir.h"

namespace forge::codegen {

// What `i`, with operands `x`, becomes; nothing when it stays.
Val SemanticRule(const Caps& caps, const Inst& i, const Type& type, std::span<const Val> x);

// Vulkan lets a device assume that there are no NaNs, unless it is told to keep them.
Val IsNan(const Caps& caps, Val x);

}  // namespace forge::codegen
