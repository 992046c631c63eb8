// SPDX-License-Identifier: Apache-2.0
// Runs kernels on the host: the invocations of a workgroup in lockstep, every access checked.
#pragma once
#include "codegen/kernel_ir.h"

namespace forge::testing {

struct MachineOptions {
  int subgroup = 8;
  ir::Bindings scalars = {};  // values of symbols
};

// Runs the whole grid. `operands` are bound as in Launch::operands; their sizes are the bounds.
//   errors: OutOfRange (an access), Internal (a barrier that not all reach, an instruction unknown)
absl::Status RunKernel(const codegen::Kernel& k, std::span<std::vector<uint8_t>* const> operands,
                       const MachineOptions& options = {});

}  // namespace forge::testing
