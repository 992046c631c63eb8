// SPDX-License-Identifier: Apache-2.0
// Runs kernels on the host: the invocations of a workgroup in lockstep, every access checked.
#pragma once
#include "codegen/kernel/kernel_ir.h"

namespace forge::testing {

struct MachineOptions {
  int subgroup = 8;
  ir::Bindings scalars = {};  // values of symbols
  // Counts accesses to shared memory, 32 words of 4 bytes at a time, and how often more of them
  // wait because two words lie in one of 32 banks, as GPUs have them.
  struct Banks {
    int64_t accesses = 0, waits = 0;
  };
  Banks* banks = nullptr;
};

// Runs the whole grid. `operands` are bound as in Launch::operands; their sizes are the bounds.
//   errors: OutOfRange (an access), Internal (a barrier that not all reach, an instruction unknown)
absl::Status RunKernel(const codegen::Kernel& k, std::span<std::vector<uint8_t>* const> operands,
                       const MachineOptions& options = {});

}  // namespace forge::testing
