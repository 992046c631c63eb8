// SPDX-License-Identifier: Apache-2.0
// Graph values as the scalar of formulas: each call appends an element-wise node to the function of
// its operand, so that decompositions and gradients read as what they compute. A number becomes a
// `fill` of the other operand's element type.
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
// exp(x), pow(x, y) and all other functions of the element-wise table.
#define FORGE_UNARY(T, name) Value name(Value x);
#define FORGE_BINARY(T, name) Value name(Value x, Value y);
#include "ir/ops/elementwise/row_list.inc"
// Fails `g.fn` where an operand is complex: rules of arithmetic hold for real numbers.  Returns
// whether it did.
bool RefuseComplex(const GradArgs& g);
// f16 and bf16 as f32, in which sums and norms accumulate; anything else, and an absent
// operand, as it is.
Value Widened(Value x);
// `x` as `to`: undoes the above.
Value Narrowed(Value x, DType to);

}  // namespace forge::ir
