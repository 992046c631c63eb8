// SPDX-License-Identifier: Apache-2.0
// Conversion of kernels to the code that a driver compiles.
#pragma once
#include "codegen/kernel/kernel_ir.h"

namespace forge::vk {

// The code of a kernel. Operand i is binding i of set 0, a storage buffer; scalars are push
// constants of 4 bytes.
struct KernelCode {
  std::string name;
  std::vector<uint32_t> spirv;
  uint32_t operands = 0, scalars = 0;
  uint32_t subgroup = 0;    // required size; 0: any
  bool parameters = false;  // scalars are a uniform buffer, binding codegen::kParameterBinding
};

// Returns the code of a kernel whose SPIR-V is already printed.
KernelCode CodeWith(const codegen::Kernel& kernel, uint32_t operands, std::vector<uint32_t> spirv);
// Prints the SPIR-V of a kernel and returns its code.
//   errors: as codegen::Verify
absl::StatusOr<KernelCode> PrintCode(const codegen::Kernel& kernel, uint32_t operands,
                                     const codegen::Caps& caps);

}  // namespace forge::vk
