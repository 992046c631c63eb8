// SPDX-License-Identifier: Apache-2.0
// The scalar of ir/ops/elementwise/rows.inc in fused kernels: a value with its element type, so
// that narrow integers wrap at their width and casts round.
#pragma once
#include "codegen/kernel/literal.h"
#include "codegen/kernel/scalar.h"
#include "codegen/region/storage.h"
#include "ir/ops/elementwise/elementwise.h"

namespace forge::codegen {

struct Element {
  Val v;
  DType dtype = DType::kF32;
};

// Returns an element of `t` from its bits.
inline Val LiteralOfBits(Builder& b, DType t, uint64_t bits) {
  const DType compute = ComputeType(t);
  if (IsFloat(compute) && t != compute) return b.Literal(Type{compute}, FloatOf(t, bits));
  return b.Bits(Type{compute}, t == compute ? bits : static_cast<uint64_t>(IntegerOf(t, bits)));
}
// Converts to an element of `t`; integers saturate, narrow floats are not rounded.
inline Val LiteralOf(Builder& b, DType t, const Number& x) {
  const DType compute = ComputeType(t);
  if (IsFloat(compute)) return b.Bits(Type{compute}, ToBits(compute, x));
  return LiteralOfBits(b, t, ToBits(t, x));
}
// Converts to an element of `t`, rounded to its precision.
inline Val StoredLiteral(Builder& b, DType t, const Number& x) {
  return LiteralOfBits(b, t, ToBits(t, x));
}
inline Element Like(const Number& x, const Element& e) {
  return {LiteralOf(*e.v.b, e.dtype, x), e.dtype};
}

#define FORGE_ELEMENT_BINARY(name, result, finish)                                     \
  inline Element name(const Element& a, const Element& b) { return {finish, result}; } \
  inline Element name(const Element& a, double b) { return name(a, Like(b, a)); }      \
  inline Element name(double a, const Element& b) { return name(Like(a, b), b); }
#define FORGE_ELEMENT_ARITHMETIC(op) \
  FORGE_ELEMENT_BINARY(operator op, a.dtype, Wrap(a.dtype, a.v op b.v))
#define FORGE_ELEMENT_COMPARISON(op) FORGE_ELEMENT_BINARY(operator op, DType::kBool, a.v op b.v)
FORGE_ELEMENT_ARITHMETIC(+)
FORGE_ELEMENT_ARITHMETIC(-)
FORGE_ELEMENT_ARITHMETIC(*)
FORGE_ELEMENT_ARITHMETIC(/)
FORGE_ELEMENT_COMPARISON(>)
FORGE_ELEMENT_COMPARISON(<)
FORGE_ELEMENT_COMPARISON(>=)
FORGE_ELEMENT_COMPARISON(<=)
FORGE_ELEMENT_COMPARISON(==)
FORGE_ELEMENT_COMPARISON(!=)
FORGE_ELEMENT_BINARY(max, a.dtype, max(a.v, b.v))
FORGE_ELEMENT_BINARY(min, a.dtype, min(a.v, b.v))
#undef FORGE_ELEMENT_ARITHMETIC
#undef FORGE_ELEMENT_COMPARISON
#undef FORGE_ELEMENT_BINARY

inline Element operator-(const Element& x) { return {Wrap(x.dtype, -x.v), x.dtype}; }
inline Element select(const Element& c, const Element& a, const Element& b) {
  return {select(c.v, a.v, b.v), a.dtype};
}
inline Element select(const Element& c, const Element& a, double b) {
  return select(c, a, Like(b, a));
}
inline Element select(const Element& c, double a, const Element& b) {
  return select(c, Like(a, b), b);
}
inline Element operator&(const Element& a, const Element& b) { return {a.v & b.v, a.dtype}; }
inline Element operator|(const Element& a, const Element& b) { return {a.v | b.v, a.dtype}; }
inline Element operator^(const Element& a, const Element& b) { return {a.v ^ b.v, a.dtype}; }
inline Element operator~(const Element& x) { return {Wrap(x.dtype, ~x.v), x.dtype}; }
inline Element operator<<(const Element& a, const Element& n) {
  return {Wrap(a.dtype, a.v << n.v), a.dtype};
}
inline Element operator>>(const Element& a, const Element& n) { return {a.v >> n.v, a.dtype}; }
inline Element mul_high(const Element& a, const Element& b) {
  return {mul_high(a.v, b.v), a.dtype};
}
inline Element abs(const Element& x) { return {Wrap(x.dtype, abs(x.v)), x.dtype}; }
inline Element floor(const Element& x) { return {floor(x.v), x.dtype}; }
inline Element round_even(const Element& x) { return {round_even(x.v), x.dtype}; }
inline Element sqrt(const Element& x) { return {sqrt(x.v), x.dtype}; }
inline Element convert(const Element& x, DType to) {
  return {ConvertElement(x.v, x.dtype, to), to};
}
template <class Row, class... More>
Element FormOf(const Row& row, const Element& x, const More&... more) {
  if constexpr (requires { row.integer(x, more...); })
    if (!IsFloat(x.dtype)) return row.integer(x, more...);
  return {FormOf(row, x.v, more.v...), x.dtype};
}

// Emits the expression of an element-wise op; defined in codegen/region/element_rows.cc.
using ElementFunction = Element (*)(const void* self, const Element* x);
#define FORGE_ROW(T, ...) Element ElementOf(const ir::T* op, const Element* x);
#include "ir/ops/elementwise/row_list.inc"

}  // namespace forge::codegen
