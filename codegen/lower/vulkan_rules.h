// SPDX-License-Identifier: Apache-2.0
// How memory is reached through Vulkan's descriptors: a view of several parts is several bindings,
// and atomics of f32 that a device lacks are exchanges of words.
#pragma once
#include "codegen/kernel/kernel_ir.h"

namespace forge::codegen {

// The views that stand for those of f32 which a device cannot do the atomics of: of u32, so that
// they can be compared and exchanged.
void MakeExchangeable(const Kernel& k, const Caps& caps, std::vector<View>& views);

struct VulkanRules {
  Builder& b;
  const Caps& caps;

  // What `i`, with operands `x`, becomes (any value where it has no result); nothing when it stays.
  Val Apply(const Inst& i, const Type& type, std::span<const Val> x) const;
  // As Builder::Add; a load, store or atomic of a view of several parts is done to the one that has
  // the element.
  Val Add(const Inst& i, const Type& type, std::span<const Val> x) const;

 private:
  struct PartRange {
    int begin, end;
  };
  Val AddAmong(PartRange parts, const Inst& i, const Type& type, std::span<const Val> x) const;
};

}  // namespace forge::codegen
