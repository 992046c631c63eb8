// SPDX-License-Identifier: Apache-2.0
// Vector conversion between f32 and narrower floats, and integers of 8 and 32 bits.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace forge::cpu {

// Convert n elements as `cast` does: towards 0, with saturation, NaN to 0. `out` overlaps nothing.
void F32ToU8(const uint8_t* f32, uint8_t* out, size_t n);
void F32ToI8(const uint8_t* f32, uint8_t* out, size_t n);
void U8ToF32(const uint8_t* in, uint8_t* f32, size_t n);
void I8ToF32(const uint8_t* in, uint8_t* f32, size_t n);
void F32ToI32(const uint8_t* f32, uint8_t* out, size_t n);
void I32ToF32(const uint8_t* in, uint8_t* f32, size_t n);

// Convert n elements between `t`, f16 or bf16, and f32; equal to the functions of base/dtype.h.
void WidenHalves(DType t, const uint16_t* in, float* out, size_t n);
void NarrowHalves(DType t, const float* in, uint16_t* out, size_t n);

}  // namespace forge::cpu
