// SPDX-License-Identifier: Apache-2.0
// The parts of Verify(). All errors are Internal; those of types say only what is wrong.
#pragma once
#include "codegen/kernel_ir.h"

namespace forge::codegen {

absl::Status VerifyStructure(const Kernel& k);               // everything but the device
absl::Status VerifyType(const Type& t);                      // does it exist?
absl::Status VerifyTypes(const Kernel& k, const Inst& i);    // operands and results, in bounds
absl::Status VerifyYields(const Kernel& k, const Inst& i);   // of control
absl::Status VerifyCaps(const Kernel& k, const Caps& caps);  // limits and features

// The instruction in one line, its regions left out.
std::string ToText(const Kernel& k, const Inst& i);

}  // namespace forge::codegen
