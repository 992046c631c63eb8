// SPDX-License-Identifier: Apache-2.0
// Functions that kernels spell out, because a device's own may be off by thousands of units.
#pragma once
#include "codegen/kernel_ir.h"

namespace forge::codegen {

Val exp(Val x);  // of f32 or f64; see ir/scalar_functions.h

}  // namespace forge::codegen
