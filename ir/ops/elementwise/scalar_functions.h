// SPDX-License-Identifier: Apache-2.0
// Transcendental functions for kernels, written once over a scalar type: a device's own exp may be
// off by thousands of units. A scalar type brings what ir/ops/elementwise/elementwise.h lists and
//   fma(a, b, c)     a * b + c; rounding twice is allowed; b and c may be doubles
//   floor, round_even, abs, copysign(magnitude, sign)
//   exp2_int(i)      2^i for whole i in -126..127 (f32) or -1022..1023 (f64); anything for NaN
//   nearest_exponent(x)  for normal x > 0: the whole i with sqrt(1/2) <= x / 2^i < sqrt(2), about
//   high_half(x)     x with the lower 12 (f32) or 27 (f64) bits of its significand cleared
// and defines its exp, log, tanh, erf and pow as one of these. NaN propagates where + and * do.
// Division may be off by 3 units and the results stay within the bounds stated.
//
// Vector code with an instruction set of its own includes ir/ops/elementwise/scalar_functions.inc
// in its own namespace instead, see MakeScalarTable.
#pragma once
#include <cstddef>
#include <limits>

namespace forge::ir {

#include "ir/ops/elementwise/scalar_functions.inc"

}  // namespace forge::ir
