// SPDX-License-Identifier: Apache-2.0
// What operators on quantised tensors share.
#pragma once
#include "formats/onnx/node.h"

namespace forge::formats {

// Scales or zero points of `x`, made to broadcast to it: one of the tensor, one for each slice of
// `axis`, or, with `block` > 0, one for so many elements along it.
ir::Value AlongAxis(OnnxNode& n, ir::Value v, const ir::Type& x, int64_t axis, int64_t block = 0);
// `v` (f32, divided by the scale) rounded half to even, plus the zero point (absent: 0), as `to`:
// integers saturate, 8-bit floats where asked.
ir::Value Quantised(OnnxNode& n, ir::Value v, ir::Value zero, DType to, bool saturate = true);
// (x - zero) * scale in f32; scale and zero point broadcast to x.
ir::Value Dequantised(OnnxNode& n, ir::Value x, ir::Value scale, ir::Value zero);
// The sum over k of (a - a0) (b - b0) in i32, as numpy.matmul; zero points may be absent.
ir::Value IntegerProduct(OnnxNode& n, ir::Value a, ir::Value b, ir::Value a0, ir::Value b0);

// Operand `i`, a zero point, in i32; absent where it is 0 or not given.
ir::Value IntegerZeroPoint(OnnxNode& n, size_t i);
// x on 0 to 255, which stand for its range widened to contain 0; scale and zero point.
struct DynamicallyQuantised {
  ir::Value value, scale, zero;
};
DynamicallyQuantised QuantisedOnItsRange(OnnxNode& n, ir::Value x);

}  // namespace forge::formats
