// SPDX-License-Identifier: Apache-2.0
// Arithmetic of complex values of a graph over their real and imaginary parts, with which complex
// numbers run on devices that have none. It is a scalar of ir/ops/elementwise/rows.inc.
#pragma once
#include "ir/ops/elementwise/scalar_math.h"

namespace forge::ir {

struct ComplexParts {
  Value re, im;  // im: absent where the number is real
};

// Part 0 or 1 of a complex value, through view_as_real.
Value PartOf(Value x, int64_t part);
// The complex value of these parts, through view_as_complex.
Value FromParts(Value re, Value im);
// The parts of a complex value; a real value has no imaginary part.
ComplexParts PartsOf(Value x);
// Zeros of the shape of `v`, whatever its elements are.
Value ZeroLike(Value v);
// A `complex` node; real numbers stay real.
Value Joined(ComplexParts z);
inline Value Joined(Value x) { return x; }

ComplexParts operator+(ComplexParts a, ComplexParts b);
ComplexParts operator+(ComplexParts a, double b);
inline ComplexParts operator+(double a, ComplexParts b) { return b + a; }
ComplexParts operator-(ComplexParts a, ComplexParts b);
ComplexParts operator-(ComplexParts a, double b);
ComplexParts operator-(double a, ComplexParts b);
ComplexParts operator-(ComplexParts a);
ComplexParts operator*(ComplexParts a, ComplexParts b);
ComplexParts operator*(ComplexParts a, double b);
inline ComplexParts operator*(double a, ComplexParts b) { return b * a; }
// By Smith's method, as the reference divides.
ComplexParts operator/(ComplexParts a, ComplexParts b);
ComplexParts operator/(double a, ComplexParts b);
Value operator==(ComplexParts a, ComplexParts b);
Value abs(ComplexParts z);
ComplexParts select(ComplexParts p, ComplexParts a, ComplexParts b);  // p is real
ComplexParts convert(ComplexParts z, DType to);                       // to a complex type
ComplexParts exp(ComplexParts z);
ComplexParts log(ComplexParts z);
ComplexParts sqrt(ComplexParts z);
ComplexParts sigmoid(ComplexParts z);
ComplexParts sin(ComplexParts z);
ComplexParts cos(ComplexParts z);
ComplexParts tan(ComplexParts z);
ComplexParts sinh(ComplexParts z);
ComplexParts cosh(ComplexParts z);
ComplexParts tanh(ComplexParts z);
// Inverse functions, with the branch cuts of C; in ir/ops/complex/inverse_functions.cc.
ComplexParts asin(ComplexParts z);
ComplexParts acos(ComplexParts z);
ComplexParts atan(ComplexParts z);
ComplexParts asinh(ComplexParts z);
ComplexParts acosh(ComplexParts z);
ComplexParts atanh(ComplexParts z);

// The decomposition of an op on complex operands by its OpDef::on_complex or its scalar
// expression; empty without either.
Values DecomposeComplex(const AnyOp& op, Function& f, ValueSpan in);

}  // namespace forge::ir
