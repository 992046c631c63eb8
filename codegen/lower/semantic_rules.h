// SPDX-License-Identifier: Apache-2.0
// Expansion of instructions whose semantics a device does not guarantee: Min, Max and comparisons
// with NaN, saturating conversions, remainders of negative numbers, products with 0, dot products.
// All printers use these rules; none concerns memory.
#pragma once
#include "codegen/kernel/kernel_ir.h"

namespace forge::codegen {

// Returns the expansion of `i` with operands `x`; null when it is unchanged.
Val SemanticRule(const Caps& caps, const Inst& i, const Type& type, std::span<const Val> x);

// A test for NaN that also works where the driver assumes that there are none, as Vulkan allows
// without SignedZeroInfNanPreserve.
Val IsNan(const Caps& caps, Val x);

}  // namespace forge::codegen
