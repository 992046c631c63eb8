// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/elementwise/scalar_math.h"

#include <limits>

#include "ir/graph/module.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/elementwise.h"

namespace forge::ir {
namespace {

// `v` as a scalar of the element type of `like`.
Value Constant(double v, Value like) {
  return (*like.fn)(Fill{.value = v, .dtype = like.type().dtype()}, {});
}

}  // namespace

Value operator+(Value a, Value b) { return (*a.fn)(Add{}, {a, b}); }
Value operator+(Value a, double b) { return a + Constant(b, a); }
Value operator+(double a, Value b) { return Constant(a, b) + b; }
Value operator-(Value a, Value b) { return (*a.fn)(Sub{}, {a, b}); }
Value operator-(Value a, double b) { return a - Constant(b, a); }
Value operator-(double a, Value b) { return Constant(a, b) - b; }
Value operator-(Value a) { return (*a.fn)(Neg{}, {a}); }
Value operator*(Value a, Value b) { return (*a.fn)(Mul{}, {a, b}); }
Value operator*(Value a, double b) { return a * Constant(b, a); }
Value operator*(double a, Value b) { return Constant(a, b) * b; }
Value operator/(Value a, Value b) { return (*a.fn)(Div{}, {a, b}); }
Value operator/(Value a, double b) { return a / Constant(b, a); }
Value operator/(double a, Value b) { return Constant(a, b) / b; }
Value operator>(Value a, Value b) { return (*a.fn)(Greater{}, {a, b}); }
Value operator>(Value a, double b) { return a > Constant(b, a); }
Value operator<(Value a, Value b) { return b > a; }
Value operator<(Value a, double b) { return Constant(b, a) > a; }
Value operator~(Value x) { return (*x.fn)(Not{}, {x}); }
Value max(Value a, Value b) { return (*a.fn)(Maximum{}, {a, b}); }
Value max(Value a, double b) { return max(a, Constant(b, a)); }
Value min(Value a, Value b) { return (*a.fn)(Minimum{}, {a, b}); }
Value min(Value a, double b) { return min(a, Constant(b, a)); }
Value select(Value p, Value a, Value b) { return (*p.fn)(Select{}, {p, a, b}); }
Value select(Value p, Value a, double b) { return select(p, a, Constant(b, a)); }
Value select(Value p, double a, Value b) { return select(p, Constant(a, b), b); }
Value sqrt(Value x) { return (*x.fn)(Sqrt{}, {x}); }
Value abs(Value x) { return (*x.fn)(Abs{}, {x}); }
Value convert(Value x, DType to) { return (*x.fn)(Cast{to}, {x}); }

#define FORGE_UNARY(T, name) \
  Value name(Value x) { return (*x.fn)(T{}, {x}); }
#define FORGE_BINARY(T, name) \
  Value name(Value x, Value y) { return (*x.fn)(T{}, {x, y}); }
#include "ir/ops/elementwise/row_list.inc"

Value Widened(Value x) {
  if (!x) return x;
  const DType t = x.type().dtype();
  return WideOf(t) == t ? x : convert(x, WideOf(t));
}

Value Narrowed(Value x, DType to) { return x.type().dtype() == to ? x : convert(x, to); }

double LeastFinite(const Type& wide) {
  if (wide.dtype() == DType::kF64) return std::numeric_limits<double>::lowest();
  return static_cast<double>(std::numeric_limits<float>::lowest());
}

}  // namespace forge::ir
