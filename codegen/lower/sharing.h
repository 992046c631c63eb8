// SPDX-License-Identifier: Apache-2.0
// One kernel for many: kernels that are equal but for their literals become one, whose scalars are
// the literals that differ. A driver compiles it once.
#pragma once
#include <map>
#include <span>
#include <vector>

#include "codegen/kernel/kernel_ir.h"

namespace forge::codegen {

class KernelSharing {
 public:
  // `max_scalars`: that a kernel may have, its own included.
  explicit KernelSharing(size_t max_scalars) : max_scalars_(max_scalars) {}
  // Replaces kernels by such as do the same: by those of earlier calls where they serve, else by
  // what is made of these. One that is like no other stays as it is.
  void Share(std::span<Kernel* const> kernels);

 private:
  class Form;
  size_t max_scalars_;
  std::map<uint64_t, std::vector<std::shared_ptr<Form>>> forms_;  // by structure
};

}  // namespace forge::codegen
