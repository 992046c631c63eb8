// SPDX-License-Identifier: Apache-2.0
// Vector conversion of f16 and bf16.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace forge::cpu {

// Convert n elements between `t`, f16 or bf16, and f32; equal to the functions of base/dtype.h.
void WidenHalves(DType t, const uint16_t* in, float* out, size_t n);
void NarrowHalves(DType t, const float* in, uint16_t* out, size_t n);

}  // namespace forge::cpu
