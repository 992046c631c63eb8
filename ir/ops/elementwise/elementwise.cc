// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/elementwise/elementwise.h"

#include "ir/op/define.h"
#include "ir/ops/elementwise/elementwise_rules.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/type/host_value.h"

namespace forge::ir {

// Dimensions as the scalar of expressions; found by argument, so not in the anonymous namespace.
static Dim max(const Dim& a, const Dim& b) { return Max(a, b); }
static Dim min(const Dim& a, const Dim& b) { return Min(a, b); }

namespace {

template <class T, class... U>
constexpr int IndexIn(List<void, U...>) {
  int at = -1, i = 0;
  ((std::is_same_v<T, U> ? at = i : 0, ++i), ...);
  return at;
}

template <class T, class D>
D Reference(const void* self, const D* x) {
  const T& op = Self<T>(self);
  if constexpr (T::kInfo.arity() == 1)
    return static_cast<D>(op.reference(x[0]));
  else if constexpr (T::kInfo.arity() == 2)
    return static_cast<D>(op.reference(x[0], x[1]));
  else
    return static_cast<D>(op.reference(x[0], x[1], x[2]));
}

template <class T>
void Gradient(const void* self, const Value* x, Value y, Value dy, Value* dx) {
  const T& op = Self<T>(self);
  if constexpr (T::kInfo.arity() == 1) {
    dx[0] = op.gradient(x[0], y, dy);
  } else if constexpr (T::kInfo.arity() == 2) {
    std::array<Value, 2> d = op.gradient(x[0], x[1], y, dy);
    std::copy(d.begin(), d.end(), dx);
  } else {
    std::array<Value, 3> d = op.gradient(x[0], x[1], x[2], y, dy);
    std::copy(d.begin(), d.end(), dx);
  }
}

template <class T>
std::optional<Dim> OnDims(const void* self, const Dim* x) {
  const T& op = Self<T>(self);
  if constexpr (requires { T::kOnDims; })
    return ApplyScalar(op, x);
  else if constexpr (T::kInfo.arity() == 1)
    return op.on_dims(x[0]);
  else
    return op.on_dims(x[0], x[1]);
}

template <class T>
constexpr bool kHasOnDims = requires { T::kOnDims; } || requires(const T op, Dim d) {
  op.on_dims(d);
} || requires(const T op, Dim d) { op.on_dims(d, d); };

template <class T>
constexpr ScalarDef MakeScalar() {
  ScalarDef d{.info = T::kInfo,
              .index = IndexIn<T>(ScalarEntries{}),
              .f64 = nullptr,
              .i64 = nullptr,
              .u64 = nullptr,
              .gradient = &Gradient<T>,
              .on_dims = nullptr,
              .check = nullptr};
  constexpr auto kTakes = [](std::string_view word) {
    return T::kInfo.inputs.find(word) != std::string_view::npos;
  };
  if constexpr (kTakes("float") || kTakes("number")) d.f64 = &Reference<T, double>;
  if constexpr (kTakes("number") || kTakes("int") || kTakes("bool")) {
    d.i64 = &Reference<T, int64_t>;
    d.u64 = &Reference<T, uint64_t>;
  }
  if constexpr (kHasOnDims<T>) d.on_dims = &OnDims<T>;
  if constexpr (requires(const T op, TypeSpan in) { op.check(in); })
    d.check = [](const void* p, TypeSpan in) { return Self<T>(p).check(in); };
  return d;
}
template <class T>
constexpr ScalarDef kScalar = MakeScalar<T>();

constexpr std::string_view Outputs(const ScalarInfo& info) {
  const bool one = info.arity() == 1;
  if (info.result == ResultType::kBool) return one ? "y: bool" : "y: bool[*r]";
  if (info.result == ResultType::kAttribute) return "y: =to";
  return one ? "y: =x" : "y: =a[*r]";
}

template <class T>
Cases CasesOf(const OpDef& def) {
  std::vector<AnyOp> samples;
  if constexpr (requires { T::samples(); })
    for (const T& op : T::samples()) samples.push_back(op);
  else
    samples.push_back(T{});
  return ElementWiseCases(def, samples);
}

template <ElementWise T>
constexpr OpDef MakeDef() {
  OpDef d = MakeCommon<T>();
  d.info = {.name = T::kInfo.name,
            .formula = T::kInfo.formula,
            .inputs = T::kInfo.inputs,
            .outputs = Outputs(T::kInfo),
            .source = T::kInfo.source};
  d.infer = &InferElementWise;
  d.gradient = &ElementWiseGradient;
  if constexpr (!requires(const T op, Eval& e) { op.evaluate(e); })
    d.evaluate = &EvaluateElementWise;
  d.cost = &CostPerElement;
  d.scalar = &kScalar<T>;
  d.cases = &CasesOf<T>;
  return d;
}

}  // namespace

#define FORGE_OP(T) FORGE_DEFINE_OP(T)
#include "ir/ops/elementwise/elementwise_list.inc"
#undef FORGE_OP

}  // namespace forge::ir
