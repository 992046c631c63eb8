// SPDX-License-Identifier: Apache-2.0
// The parts of Hash(), for whoever tells kernels apart by some of them.
#pragma once
#include "codegen/kernel_ir.h"

namespace forge::codegen {

uint64_t HashType(uint64_t seed, const Type& t);
// Of what a kernel is to its device: subgroups, workgroup, how many scalars, views.
uint64_t HashInterface(const Kernel& k);

}  // namespace forge::codegen
