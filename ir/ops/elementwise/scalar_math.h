// SPDX-License-Identifier: Apache-2.0
// Arithmetic of graph values, for decompositions and gradients: each call appends an element-wise
// node to the function of its operand. A number becomes a `fill` of the element type of the other
// operand.
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

Value operator+(Value a, Value b);
Value operator+(Value a, double b);
Value operator+(double a, Value b);
Value operator-(Value a, Value b);
Value operator-(Value a, double b);
Value operator-(double a, Value b);
Value operator-(Value a);
Value operator*(Value a, Value b);
Value operator*(Value a, double b);
Value operator*(double a, Value b);
Value operator/(Value a, Value b);
Value operator/(Value a, double b);
Value operator/(double a, Value b);
Value operator>(Value a, Value b);
Value operator>(Value a, double b);
Value operator<(Value a, Value b);
Value operator<(Value a, double b);
Value operator~(Value x);
Value max(Value a, Value b);
Value max(Value a, double b);
Value min(Value a, Value b);
Value min(Value a, double b);
Value select(Value p, Value a, Value b);
Value select(Value p, Value a, double b);
Value select(Value p, double a, Value b);
Value sqrt(Value x);
Value abs(Value x);
Value convert(Value x, DType to);
// All functions of the element-wise table: exp(x), pow(x, y) ...
#define FORGE_UNARY(T, name) Value name(Value x);
#define FORGE_BINARY(T, name) Value name(Value x, Value y);
#include "ir/ops/elementwise/row_list.inc"
// Converts f16 and bf16 to f32, in which sums and norms accumulate; returns other and absent values
// unchanged.
Value Widened(Value x);
// Converts back to `to`, the type before Widened.
Value Narrowed(Value x, DType to);
// The least finite number of a widened float type.
double LeastFinite(const Type& wide);

}  // namespace forge::ir
