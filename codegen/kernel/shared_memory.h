// SPDX-License-Identifier: Apache-2.0
// The layout of a workgroup's shared memory, for choosing, emitting and verifying alike.
#pragma once
#include "codegen/kernel/kernel_ir.h"

namespace forge::codegen {

struct SharedArray {
  Type elem = {};
  int64_t extent = 0;  // elements
};

// What arrays take at most: drivers begin each at a multiple of up to 16 bytes.
int64_t SharedBytes(std::span<const SharedArray> arrays);
int64_t SharedBytes(const Kernel& k);

}  // namespace forge::codegen
