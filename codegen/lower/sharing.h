// SPDX-License-Identifier: Apache-2.0
// Merges kernels that differ only in literals: the literals that differ become scalars, and the
// driver compiles one kernel.
#pragma once
#include <map>
#include <span>
#include <vector>

#include "codegen/kernel/kernel_ir.h"

namespace forge::codegen {

class KernelSharing {
 public:
  // max_scalars: the limit of the device, including the kernel's own scalars
  explicit KernelSharing(size_t max_scalars) : max_scalars_(max_scalars) {}
  // Replaces kernels by equivalent shared ones, from earlier calls where possible. A kernel without
  // an equal one is unchanged.
  void Share(std::span<Kernel* const> kernels);

 private:
  class Form;
  size_t max_scalars_;
  std::map<uint64_t, std::vector<std::shared_ptr<Form>>> forms_;  // by structure
};

}  // namespace forge::codegen
