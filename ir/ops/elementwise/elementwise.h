// SPDX-License-Identifier: Apache-2.0
// Element-wise ops. An entry is an op: name, reference, expression, gradient, nothing else. The
// expression is generic in its scalar, and that one text is the GPU kernel (codegen::Val), the
// CPU's vector code (Highway lanes), the decomposition (ir::Value) and, where kOnDims, the
// arithmetic of shapes (ir::Dim). The reference is <cmath> in f64, or exact integers, and shares
// nothing with the expression.
//
// A scalar type is a class (calls are found by argument) with these, doubles allowed on either side
// and converted to the type of the other, saturating for integers:
//   + - *            integers wrap
//   /                integers truncate; x / 0 = -1 and the lowest value / -1 wraps
//   > < >= <= ==     give its boolean, false for NaN
//   & | ^ ~          of integers and booleans
//   -x abs           integers wrap
//   max min          propagate NaN
//   select(c, a, b)  a where c
//   sqrt floor round_even
//   exp log tanh erf pow   see ir/ops/elementwise/scalar_functions.h
//   convert(x, t)    float to integer saturates and takes NaN to 0; to bool is x != 0; half to even
// f16 and bf16 elements are computed in f32 and rounded when they are stored or converted.
//
// Operands broadcast by the NumPy rule.
#pragma once
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

#include "ir/op/op.h"

namespace forge::ir {

// The element type of the result: the last operand's, bool, or the attribute of kind DType.
enum class ResultType : uint8_t { kSame, kBool, kAttribute };

struct ScalarInfo {
  std::string_view name, formula, source;
  std::string_view inputs = "x: float";  // a signature without shapes, see OpInfo
  ResultType result = ResultType::kSame;
  double low = -4, high = 4;  // cases draw operands from here, edge values are added
  // Bound against the reference in f32 and f64, in units of the last place of the result or of
  // `scale`, whichever is larger: cancellation makes no result more exact than its terms. Results
  // narrower than f32 are allowed one unit.
  double ulps = 0, scale = 0;

  // Operands, 1 to 3.
  constexpr int arity() const {
    int n = 1;
    for (char c : inputs) n += c == ';';
    return n;
  }
};

// The entries, the first place is void: `MakeScalarTable` takes it.
template <class... T>
struct List {};

// What entries are made of besides their expression.
template <class T>
constexpr auto Wrapping(T x) {
  if constexpr (std::is_same_v<T, int64_t>)
    return static_cast<uint64_t>(x);
  else
    return x;
}
double Quotient(double a, double b);
int64_t Quotient(int64_t a, int64_t b);
uint64_t Quotient(uint64_t a, uint64_t b);
// `v` in T; integers saturate.
template <class T>
T Saturated(double v);
template <>
double Saturated<double>(double v);
template <>
int64_t Saturated<int64_t>(double v);
template <>
uint64_t Saturated<uint64_t>(double v);
absl::Status CheckNumber(DType t);  // refuses what is neither bool nor a number of 8 bits or more
absl::Status CheckCast(DType to);   // the same, but for floats of a byte
absl::Status CheckBounds(double low, double high, const Type& x);  // clamp on integers
absl::Status EvaluateCast(Eval& e);

#include "ir/ops/elementwise/elementwise_entries.inc"

#define FORGE_OP(T) const OpDef& DefOf(const T*);
#include "ir/ops/elementwise/elementwise_list.inc"
#undef FORGE_OP

// What is left of an entry when its type is forgotten.
struct ScalarDef {
  ScalarInfo info;
  int index = 0;  // into every table made by ScalarTable and MakeScalarTable
  // The reference on one element. Integers (bool as 0 or 1) come sign- or zero-extended and wrap
  // when stored; null where the op takes no floats or floats only.
  double (*f64)(const void* self, const double* x) = nullptr;
  int64_t (*i64)(const void* self, const int64_t* x) = nullptr;
  uint64_t (*u64)(const void* self, const uint64_t* x) = nullptr;
  // Sets one gradient for each operand, of the result's shape; absent where none flows.
  void (*gradient)(const void* self, const Value* x, Value y, Value dy, Value* dx) = nullptr;
  // Null unless the op is arithmetic of shapes; nullopt where these dims cannot be proven.
  std::optional<Dim> (*on_dims)(const void* self, const Dim* x) = nullptr;
  // Refuses what the signature cannot say; may be null.
  absl::Status (*check)(const void* self, TypeSpan in) = nullptr;
};

// The expression of T on x[0 .. arity).
template <class T, class S>
auto ApplyScalar(const T& op, const S* x) {
  if constexpr (T::kInfo.arity() == 1)
    return op.scalar(x[0]);
  else if constexpr (T::kInfo.arity() == 2)
    return op.scalar(x[0], x[1]);
  else
    return op.scalar(x[0], x[1], x[2]);
}

// One function for each entry, made by `Policy::Make<T>()`; ops are named nowhere:
//   struct Loops {
//     using Function = void (*)(const void* self, const float* const* in, float* out, size_t n);
//     template <class T> static constexpr Function Make();
//   };
//   constexpr auto kLoops = MakeScalarTable<Loops>(ScalarEntries{});
//   kLoops[def.scalar->index](self, in, out, n);
// Vector code compiled for an instruction set of its own (Highway's dynamic dispatch) cannot call
// expressions that were defined outside its region: there it includes
// ir/ops/elementwise/elementwise_entries.inc once more, in its own namespace, and gives that
// namespace's ScalarEntries. The structs are the same token for token, so `self` may be read
// through either.
template <class Policy, class... T>
constexpr auto MakeScalarTable(List<void, T...>) {
  return std::array<typename Policy::Function, sizeof...(T)>{Policy::template Make<T>()...};
}

template <class S>
struct ScalarPerElement {
  using Function = S (*)(const void* self, const S* x);
  template <class T>
  static constexpr Function Make() {
    return [](const void* self, const S* x) -> S {
      if constexpr (std::is_empty_v<T>)
        return ApplyScalar(T{}, x);
      else
        return ApplyScalar(*static_cast<const T*>(self), x);
    };
  }
};
// A backend's scalar functions: `kTable[def.scalar->index](self, operands)`.
template <class S>
constexpr auto ScalarTable() {
  return MakeScalarTable<ScalarPerElement<S>>(ScalarEntries{});
}

}  // namespace forge::ir
