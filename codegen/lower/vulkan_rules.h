// SPDX-License-Identifier: Apache-2.0
// Memory access through Vulkan descriptors: views of several chunks become several bindings, and
// missing f32 atomics become compare-exchange loops.
#pragma once
#include "codegen/kernel/kernel_ir.h"

namespace forge::codegen {

// Changes f32 views that need missing atomics to u32, for compare-exchange.
void MakeExchangeable(const Kernel& k, const Caps& caps, std::vector<View>& views);

struct VulkanRules {
  Builder& b;
  const Caps& caps;

  // Returns the expansion of `i` with operands `x`, or any value if it has no result; null when it
  // is unchanged.
  Val Apply(const Inst& i, const Type& type, std::span<const Val> x) const;
  // As Builder::Add; a load, store or atomic of a view of several chunks selects the chunk of the
  // element.
  Val Add(const Inst& i, const Type& type, std::span<const Val> x) const;

 private:
  struct PartRange {
    int begin, end;
  };
  Val AddAmong(PartRange parts, const Inst& i, const Type& type, std::span<const Val> x) const;
};

}  // namespace forge::codegen
