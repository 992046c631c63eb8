// SPDX-License-Identifier: Apache-2.0
// What a block, with those inside of it, takes from outside.
#pragma once
#include "codegen/kernel_ir.h"

namespace forge::codegen {

struct Captures {
  std::vector<Id> values;       // ascending
  std::vector<uint16_t> views;  // ascending
};
Captures CapturesOf(const Kernel& k, BlockId block);

}  // namespace forge::codegen
