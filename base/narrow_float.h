// SPDX-License-Identifier: Apache-2.0
// Every float type narrower than f32, from and to f64, rounded once (half to even).
#pragma once
#include <cstdint>

#include "base/dtype.h"

namespace forge {

// Those of a byte that casts and movements take.
inline constexpr DTypes kFloat8Types = Bit(DType::kF8E4M3) | Bit(DType::kF8E5M2);
inline constexpr DTypes kAllFloatTypes = kFloatTypes | kFloat8Types;
// True for f4e2m1, the float8s, bf16 and f16.
bool IsNarrowFloat(DType t);
// The value of `bits`; exact.
double DecodeNarrowFloat(DType t, uint16_t bits);
// The nearest value. Too large: infinity where the type has one (f16, bf16, f8e5m2), else the
// largest finite value, which infinity becomes too. NaN: the type's NaN; f4e2m1, which has none,
// gives 0. Minus zero becomes zero in the fnuz types, which lack it.
//   source: OCP 8-bit Floating Point Specification 1.0, OCP Microscaling Formats 1.0,
//           ONNX "Float stored in 8 bits" (the fnuz types)
uint16_t EncodeNarrowFloat(DType t, double v);

}  // namespace forge
