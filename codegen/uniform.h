// SPDX-License-Identifier: Apache-2.0
// Who is sure to see the same value: one rule for an instruction, one walk for a block.
#pragma once
#include "codegen/kernel_ir.h"

namespace forge::codegen {

// The uniformity of what a plain instruction (no If, For, While) makes of its operands.
Uniform UniformOf(const Kernel& k, const Inst& i);
// How uniformly the body of an If, For or While runs: what decides is made already.
Uniform UniformOfControl(const Kernel& k, const Inst& i);
// Recomputes everything made below `block`, whose arguments are known. Loops are assumed uniform
// and corrected until nothing changes.
void PropagateUniform(Kernel& k, BlockId block);
// The same for the results of one If, For or While and all within.
void PropagateUniform(Kernel& k, const Inst& control);

}  // namespace forge::codegen
