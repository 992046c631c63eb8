// SPDX-License-Identifier: Apache-2.0
// Transcendental functions for kernels, written once over a scalar type: a device's own exp may be
// off by thousands of units. A scalar type brings what ir/ops/elementwise.h lists and
//   fma(a, b, c)     a * b + c; rounding twice is allowed; b and c may be doubles
//   floor, round_even
//   exp2_int(i)      2^i for whole i in -126..127 (f32) or -1022..1023 (f64); anything for NaN
// and defines its exp as one of these. NaN propagates where + and * do.
//
// Vector code with an instruction set of its own includes ir/scalar_functions.inc in its own
// namespace instead, see MakeScalarTable.
#pragma once

namespace forge::ir {

#include "ir/scalar_functions.inc"

}  // namespace forge::ir
