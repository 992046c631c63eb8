// SPDX-License-Identifier: Apache-2.0
// Defines the ops of the element-wise table, from its rows.
#include "ir/graph/module.h"
#include "ir/op/define.h"
#include "ir/ops/complex/parts.h"
#include "ir/ops/elementwise/elementwise_rules.h"
#include "ir/ops/elementwise/row_parts.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/type/host_value.h"

namespace forge::ir {

// Dimensions as the scalar of expressions. Found by argument-dependent lookup, so not in the
// anonymous namespace.
[[maybe_unused]] static Dim max(const Dim& a, const Dim& b) { return Max(a, b); }
[[maybe_unused]] static Dim min(const Dim& a, const Dim& b) { return Min(a, b); }

namespace rows {
#include "ir/ops/elementwise/all_rows.inc"
}  // namespace rows

namespace {

using rows::Row;
using rows::RowAt;

enum RowIndex : int {
#define FORGE_ROW(T, ...) kIndexOf##T,
#include "ir/ops/elementwise/row_list.inc"
};

// True when a row lacks a member of this name; if it has one, the name is ambiguous in Both.
#define FORGE_PART(part)                        \
  struct Named_##part {                         \
    int part;                                   \
  };                                            \
  template <class T>                            \
  struct Both_##part : Row<T>, Named_##part {}; \
  template <class T>                            \
  constexpr bool kLacks_##part = requires { &Both_##part<T>::part; };
FORGE_PART(kInfo)
FORGE_PART(reference)
FORGE_PART(scalar)
FORGE_PART(f32)
FORGE_PART(f64)
FORGE_PART(gradient)
#undef FORGE_PART

template <class T>
constexpr bool CheckParts() {
  static_assert(!kLacks_kInfo<T>, "an element-wise op needs `kInfo`: name, formula, source");
  static_assert(!kLacks_reference<T>, "an element-wise op needs `reference`");
  static_assert(!kLacks_scalar<T> || !kLacks_f32<T>,
                "an element-wise op needs an expression: `scalar`, or `f32` and `f64`");
  static_assert(kLacks_f32<T> == kLacks_f64<T>, "an element-wise op needs both `f32` and `f64`");
  static_assert(!kLacks_gradient<T>, "an element-wise op needs `gradient`");
  return true;
}

template <class T, class D>
D Reference(const void* self, const D* x) {
  const Row<T> row = RowAt<T>(self);
  if constexpr (Row<T>::kInfo.arity() == 1)
    return static_cast<D>(row.reference(x[0]));
  else if constexpr (Row<T>::kInfo.arity() == 2)
    return static_cast<D>(row.reference(x[0], x[1]));
  else
    return static_cast<D>(row.reference(x[0], x[1], x[2]));
}

template <class T>
Value OnParts(const void* self, const ComplexParts* x) {
  const Row<T> row = RowAt<T>(self);
  if constexpr (requires { row.complex(x[0]); })
    return Joined(row.complex(x[0]));
  else
    return Joined(rows::ApplyRowTo(row, x));
}

template <class T>
void Gradient(const void* self, const Value* x, Value y, Value dy, Value* dx) {
  const Row<T> row = RowAt<T>(self);
  if constexpr (Row<T>::kInfo.arity() == 1) {
    dx[0] = row.gradient(x[0], y, dy);
  } else if constexpr (Row<T>::kInfo.arity() == 2) {
    std::array<Value, 2> d = row.gradient(x[0], x[1], y, dy);
    std::copy(d.begin(), d.end(), dx);
  } else {
    std::array<Value, 3> d = row.gradient(x[0], x[1], x[2], y, dy);
    std::copy(d.begin(), d.end(), dx);
  }
}

template <class T>
std::optional<Dim> OnDims(const void* self, const Dim* x) {
  const Row<T> row = RowAt<T>(self);
  if constexpr (requires { Row<T>::kOnDims; })
    return rows::ApplyRowTo(row, x);
  else if constexpr (Row<T>::kInfo.arity() == 1)
    return row.on_dims(x[0]);
  else
    return row.on_dims(x[0], x[1]);
}

template <class T>
constexpr bool kHasOnDims = requires { Row<T>::kOnDims; } || requires(const Row<T> row, Dim d) {
  row.on_dims(d);
} || requires(const Row<T> row, Dim d) { row.on_dims(d, d); };

template <class T>
constexpr ScalarDef MakeScalar(int index) {
  constexpr const ScalarInfo& kInfo = Row<T>::kInfo;
  ScalarDef d{.info = kInfo, .index = index, .gradient = &Gradient<T>};
  if constexpr (Takes(kInfo, DType::kF64)) d.f64 = &Reference<T, double>;
  if constexpr (Takes(kInfo, DType::kI32) || Takes(kInfo, DType::kBool)) {
    d.i64 = &Reference<T, int64_t>;
    d.u64 = &Reference<T, uint64_t>;
  }
  if constexpr (Takes(kInfo, DType::kC128)) {
    d.c128 = &Reference<T, std::complex<double>>;
    d.complex = &OnParts<T>;
  }
  if constexpr (kHasOnDims<T>) d.on_dims = &OnDims<T>;
  if constexpr (requires(const Row<T> row, TypeSpan in) { row.check(in); })
    d.check = [](const void* self, TypeSpan in) { return RowAt<T>(self).check(in); };
  return d;
}
template <class T, int kIndex>
constexpr ScalarDef kScalar = MakeScalar<T>(kIndex);

constexpr std::string_view Outputs(const ScalarInfo& info) {
  const bool one = info.arity() == 1;
  if (info.result == ResultType::kBool) return one ? "y: bool" : "y: bool[*r]";
  if (info.result == ResultType::kReal) return one ? "y: real(x)" : "y: real(a)[*r]";
  if (info.result == ResultType::kAttribute) return "y: =to";
  return one ? "y: =x" : "y: =a[*r]";
}

template <class T>
Cases CasesOf(const OpDef& def) {
  std::vector<AnyOp> samples;
  if constexpr (requires { Row<T>::samples(); })
    for (const T& op : Row<T>::samples()) samples.push_back(op);
  else
    samples.push_back(T{});
  return ElementWiseCases(def, samples);
}

template <class T, int kIndex>
constexpr OpDef MakeRow() {
  static_assert(CheckParts<T>());
  constexpr const ScalarInfo& kInfo = Row<T>::kInfo;
  OpDef d;
  d.info = {.name = kInfo.name,
            .formula = kInfo.formula,
            .inputs = kInfo.inputs,
            .outputs = Outputs(kInfo),
            .source = kInfo.source};
  d.fields = FieldsOf<T, Row<T>>();
  if constexpr (!std::is_empty_v<T>) d.make = &MakeAttributes<T>;
  d.infer = &InferElementWise;
  d.gradient = &ElementWiseGradient;
  if constexpr (requires(Eval& e) { Row<T>::evaluate(e); })
    d.evaluate = [](const AnyOp&, Eval& e) { return Row<T>::evaluate(e); };
  else
    d.evaluate = &EvaluateElementWise;
  d.cost = &CostPerElement;
  d.scalar = &kScalar<T, kIndex>;
  if constexpr (Takes(kInfo, DType::kC128)) d.decompose_complex = &DecomposeComplex;
  d.cases = &CasesOf<T>;
  return d;
}

}  // namespace

#define FORGE_ROW(T, ...)                                    \
  const OpDef& DefOf(const T*) {                             \
    static constexpr OpDef kDef = MakeRow<T, kIndexOf##T>(); \
    return kDef;                                             \
  }
#include "ir/ops/elementwise/row_list.inc"

}  // namespace forge::ir
