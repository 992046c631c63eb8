// SPDX-License-Identifier: Apache-2.0
// Kernels as CUDA C++.
#pragma once
#include <string>
#include <string_view>

#include "codegen/kernel/kernel_ir.h"

namespace forge::codegen {

// A kernel as CUDA C++ for NVRTC, without headers. Arguments of a launch: a pointer for each of
// OperandsOf(kernel), then the scalars, each an i32. Compilers must not contract: --fmad=false.
struct CudaCode {
  std::string entry;  // the name of the function
  std::string text;
};
// The kernel binds operands 0 .. this - 1.
int OperandsOf(const Kernel& k);
// The shared memory that its launches ask for; 0: what it needs is declared in its text.
int64_t DynamicSharedBytes(const Kernel& k);

// Prints a verified kernel; cannot fail. Views have one chunk each, and subgroups 32 invocations.
//   description: op and shapes, for the name of the function and its comment
CudaCode PrintCuda(const Kernel& k, const Caps& caps, std::string_view description);

}  // namespace forge::codegen
