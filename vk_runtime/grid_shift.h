// SPDX-License-Identifier: Apache-2.0
// Grids larger than a device dispatches: vkCmdDispatchBase may not pass the limit either.
#pragma once
#include "codegen/kernel_ir.h"

namespace forge::vk {

// May some axis of the grid pass the device's limit?
bool NeedsShift(const codegen::Kernel& k, const codegen::Caps& caps);
constexpr size_t kShiftScalars = 3;
// The same kernel with kShiftScalars scalars more, which are added to its workgroup's ids: a part
// of the grid is then a dispatch of its own.
codegen::Kernel ShiftGrid(codegen::Kernel k);

}  // namespace forge::vk
