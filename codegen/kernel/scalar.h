// SPDX-License-Identifier: Apache-2.0
// The operators of Val, which is the scalar of ir/ops/elementwise/rows.inc in kernels. They are
// total, see docs/semantics.md: integers wrap, x / 0 is -1, shifts by the width or more give 0 or
// the sign. Scalars broadcast to vectors; a double is converted to the type of the other operand,
// saturating for integers.
#pragma once
#include "codegen/kernel/kernel_ir.h"

namespace forge::codegen {

// Returns the literal `v` of the type of `x`.
inline Val Like(double v, Val x) { return x.b->Literal(x.type(), v); }

#define FORGE_VAL_BINARY(name)                                     \
  Val name(Val a, Val b);                                          \
  inline Val name(Val a, double b) { return name(a, Like(b, a)); } \
  inline Val name(double a, Val b) { return name(Like(a, b), b); }
FORGE_VAL_BINARY(operator+)
FORGE_VAL_BINARY(operator-)
FORGE_VAL_BINARY(operator*)
FORGE_VAL_BINARY(operator/)
FORGE_VAL_BINARY(operator%)  // sign of the dividend; x % 0 is x; integers only
FORGE_VAL_BINARY(operator&)
FORGE_VAL_BINARY(operator|)
FORGE_VAL_BINARY(operator^)
FORGE_VAL_BINARY(operator<<)
FORGE_VAL_BINARY(operator>>)  // arithmetic where the left side is signed
FORGE_VAL_BINARY(operator==)
FORGE_VAL_BINARY(operator!=)
FORGE_VAL_BINARY(operator<)
FORGE_VAL_BINARY(operator<=)
FORGE_VAL_BINARY(operator>)
FORGE_VAL_BINARY(operator>=)
FORGE_VAL_BINARY(max)  // NaN when either is
FORGE_VAL_BINARY(min)
#undef FORGE_VAL_BINARY

Val operator-(Val x);
Val operator~(Val x);  // bits and bools; operator! would test whether a Val is present

Val select(Val condition, Val a, Val b);
inline Val select(Val c, Val a, double b) { return select(c, a, Like(b, a)); }
inline Val select(Val c, double a, Val b) { return select(c, Like(a, b), b); }
Val fma(Val a, Val b, Val c);  // a * b + c, rounded once where the device can
inline Val fma(Val a, double b, Val c) { return fma(a, Like(b, a), c); }
inline Val fma(Val a, Val b, double c) { return fma(a, b, Like(c, a)); }
inline Val fma(Val a, double b, double c) { return fma(a, Like(b, a), Like(c, a)); }

Val abs(Val x);
Val sqrt(Val x);
Val rsqrt(Val x);
Val floor(Val x);
Val round_even(Val x);
Val isnan(Val x);
// The device's own functions, which may be off by thousands of units of the last place.
Val native_exp2(Val x);
Val native_log2(Val x);
Val native_sin(Val x);
Val native_cos(Val x);
Val exp2_int(Val x);          // 2^x for whole x in -126..127 (f32) or -1022..1023 (f64)
Val nearest_exponent(Val x);  // see ir/ops/elementwise/rows.inc, as for the following
Val high_half(Val x);
Val copysign(Val magnitude, Val sign);
Val mul_high(Val a, Val b);    // the upper half of the product of 32-bit integers
Val convert(Val x, DType to);  // float to integer saturates, NaN to 0; to bool is x != 0
Val bitcast(Val x, DType to);  // equal widths
// Repeats a scalar `lanes` times; returns a vector of that many lanes unchanged.
Val splat(Val x, int lanes);

// 32-bit words in float expressions, see ir/ops/elementwise/rows.inc.
inline Val word_like(Val x, uint32_t bits) { return x.b->Bits(x.type().With(DType::kU32), bits); }
inline Val to_word(Val x) { return convert(x, DType::kU32); }
inline Val from_word(Val x, Val word) { return convert(word, x.type().elem); }

// Calls the expression of a row for f32 or f64, or the one of native functions where the kernel may
// approximate.
template <class Row>
Val FormOf(const Row& row, Val x) {
  if constexpr (requires { row.fast(x); })
    if (x.b->kernel().approximate && x.type().elem == DType::kF32) return row.fast(x);
  return x.type().elem == DType::kF64 ? row.f64(x) : row.f32(x);
}
template <class Row>
Val FormOf(const Row& row, Val x, Val y) {
  const int lanes = std::max(x.type().lanes, y.type().lanes);
  const Val a = splat(x, lanes), b = splat(y, lanes);
  return a.type().elem == DType::kF64 ? row.f64(a, b) : row.f32(a, b);
}

// Index arithmetic: a >= 0 and b > 0 must hold.
Val QuotientOf(Val a, Val b);
Val RemainderOf(Val a, Val b);

}  // namespace forge::codegen
