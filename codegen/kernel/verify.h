// SPDX-License-Identifier: Apache-2.0
// The checks of Verify().
#pragma once
#include "codegen/kernel/kernel_ir.h"

namespace forge::codegen {

// A message without the name of the kernel; empty: no fault.
using Fault = std::string;

Fault VerifyStructure(const Kernel& k);              // everything but the device
Fault VerifyType(const Type& t);                     // the type exists
Fault VerifyTypes(const Kernel& k, const Inst& i);   // operands and results, in bounds
Fault VerifyYields(const Kernel& k, const Inst& i);  // of control

// Returns the instruction in one line, without its blocks.
std::string ToText(const Kernel& k, const Inst& i);

}  // namespace forge::codegen
