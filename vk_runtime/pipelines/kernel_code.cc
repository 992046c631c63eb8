// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/pipelines/kernel_code.h"

namespace forge::vk {

KernelCode CodeWith(const codegen::Kernel& kernel, uint32_t operands, std::vector<uint32_t> spirv) {
  return {.name = kernel.name,
          .spirv = std::move(spirv),
          .operands = operands,
          .scalars = static_cast<uint32_t>(kernel.scalars.size()),
          .subgroup = kernel.subgroup,
          .parameters = codegen::ReadsStepValues(kernel)};
}

absl::StatusOr<KernelCode> PrintCode(const codegen::Kernel& kernel, uint32_t operands,
                                     const codegen::Caps& caps) {
  FORGE_RETURN_IF_ERROR(codegen::Verify(kernel, caps));
  return CodeWith(kernel, operands, codegen::PrintSpirv(kernel, caps));
}

}  // namespace forge::vk
