// SPDX-License-Identifier: Apache-2.0
// Conversion between f64 and the float types narrower than f32, rounded once (half to even).
#pragma once
#include <cstdint>

#include "base/dtype.h"

namespace forge {

// The 8-bit floats, which are stored, moved and converted, not computed with; so is f4e2m1.
inline constexpr DTypes kFloat8Types =
    Bit(DType::kF8E4M3) | Bit(DType::kF8E5M2) | Bit(DType::kF8E4M3Fnuz) | Bit(DType::kF8E5M2Fnuz);
inline constexpr DTypes kAllFloatTypes = kFloatTypes | kFloat8Types | Bit(DType::kF4E2M1);
// Integers of less than a byte, of which the same is true.
inline constexpr DTypes kTinyIntTypes =
    Bit(DType::kU2) | Bit(DType::kU4) | Bit(DType::kI2) | Bit(DType::kI4);
// What casts take and give besides numbers and bool.
inline constexpr DTypes kStoredOnlyTypes = kFloat8Types | Bit(DType::kF4E2M1) | kTinyIntTypes;
// Returns true for f4e2m1, the 8-bit floats, bf16 and f16.
bool IsNarrowFloat(DType t);
// Returns the value of `bits`, exactly.
double DecodeNarrowFloat(DType t, uint16_t bits);
// Returns the nearest value. Overflow and infinity give infinity where the type has it (f16, bf16,
// f8e5m2), else the largest finite value. NaN gives the NaN of the type; 0 in f4e2m1, which has
// none. Minus zero gives zero in the fnuz types, which lack it.
//   source: OCP 8-bit Floating Point Specification 1.0, OCP Microscaling Formats 1.0,
//           ONNX "Float stored in 8 bits" (the fnuz types)
uint16_t EncodeNarrowFloat(DType t, double v);

}  // namespace forge
