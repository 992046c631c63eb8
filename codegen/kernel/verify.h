// SPDX-License-Identifier: Apache-2.0
// The parts of Verify().
#pragma once
#include "codegen/kernel/kernel_ir.h"

namespace forge::codegen {

// What is wrong, the kernel left out; empty: nothing.
using Fault = std::string;

Fault VerifyStructure(const Kernel& k);              // everything but the device
Fault VerifyType(const Type& t);                     // does it exist?
Fault VerifyTypes(const Kernel& k, const Inst& i);   // operands and results, in bounds
Fault VerifyYields(const Kernel& k, const Inst& i);  // of control

// The instruction in one line, its regions left out.
std::string ToText(const Kernel& k, const Inst& i);

}  // namespace forge::codegen
