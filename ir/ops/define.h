// SPDX-License-Identifier: Apache-2.0
// Included by the .cc of an op and nowhere else: forgets the op's type.
#pragma once
#include <memory>

#include "ir/ops/op.h"
#include "ir/signature.h"

namespace forge::ir {

// What ops of a kind share.
absl::Status EvaluateMovement(const OpDef& def, const void* self, Eval& e);
Cost CostPerElement(const OpDef& def, const void* self, TypeSpan in);
Cost CostOfMovement(const OpDef& def, const void* self, TypeSpan in);  // nothing

// What is known of the elements of each operand.
using Known = std::span<const std::optional<Dims>>;

// The attributes behind a node's pointer; ops without attributes are not stored.
template <class T>
const T& Self(const void* op) {
  if constexpr (std::is_empty_v<T>) {
    static constexpr T kEmpty{};
    return kEmpty;
  } else {
    return *static_cast<const T*>(op);
  }
}

template <class T>
constexpr Fields FieldsOf() {
  if constexpr (requires { T::kFields; }) {
    static_assert(FieldCount<T>() == std::size(T::kFields), "every attribute stands in kFields");
    return T::kFields;
  } else {
    static_assert(std::is_empty_v<T>, "attributes without kFields");
    return {};
  }
}

template <class T>
std::shared_ptr<void> MakeAttributes(const void* from) {
  return from ? std::make_shared<T>(*static_cast<const T*>(from)) : std::make_shared<T>();
}

// What every op has, whatever its kind.
template <class T>
constexpr OpDef MakeCommon() {
  OpDef d;
  d.fields = FieldsOf<T>();
  if constexpr (!std::is_empty_v<T>) d.make = &MakeAttributes<T>;
  if constexpr (requires(const T op, Eval& e) { op.evaluate(e); })
    d.evaluate = [](const OpDef&, const void* p, Eval& e) { return Self<T>(p).evaluate(e); };
  return d;
}

template <class T>
constexpr void SetGradient(OpDef& d) {
  if constexpr (requires(const T op, const GradArgs& g) { op.gradient(g); })
    d.gradient = [](const void* p, const GradArgs& g) { return Self<T>(p).gradient(g); };
  else if constexpr (Is<decltype(T::gradient), NotDifferentiable>)
    d.no_gradient = T::gradient.why;
  else
    d.no_gradient = Is<decltype(T::gradient), Zero> ? "zero" : "pending";
}

template <Op T>
  requires(!ElementWise<T>)
constexpr OpDef MakeDef() {
  OpDef d = MakeCommon<T>();
  d.info = T::kInfo;
  d.cases = [](const OpDef&) { return T::cases(); };
  SetGradient<T>(d);
  if constexpr (requires(const T op, TypeSpan in) { op.infer(in); })
    d.infer = [](const OpDef&, const void* p, TypeSpan in) { return Self<T>(p).infer(in); };
  else
    d.infer = &InferBySignature;
  if constexpr (requires(const T op, Function& f, ValueSpan in) { op.decompose(f, in); })
    d.decompose = [](const void* p, Function& f, ValueSpan in) {
      return Self<T>(p).decompose(f, in);
    };
  if constexpr (Movement<T>) {
    d.map = [](const void* p, TypeSpan in, const Dims& at) { return Self<T>(p).map(in, at); };
    if constexpr (!requires(const T op, Eval& e) { op.evaluate(e); })
      d.evaluate = &EvaluateMovement;
    d.cost = &CostOfMovement;
  }
  if constexpr (requires(const T op, TypeSpan in) { op.cost(in); })
    d.cost = [](const OpDef&, const void* p, TypeSpan in) {
      return AreRanked(in) ? Self<T>(p).cost(in) : Cost{};
    };
  else if constexpr (!Movement<T>)
    d.cost = &CostPerElement;
  if constexpr (requires(const T op, Eval& e) { op.magnitude(e); })
    d.magnitude = [](const void* p, Eval& e) { return Self<T>(p).magnitude(e); };
  if constexpr (requires(const T op, TypeSpan in, Known known) { op.contents(in, known); })
    d.contents = [](const void* p, TypeSpan in, Known known) {
      return Self<T>(p).contents(in, known);
    };
  return d;
}

}  // namespace forge::ir

// Inside namespace forge::ir, last in the file.
#define FORGE_DEFINE_OP(T)                      \
  const OpDef& DefOf(const T*) {                \
    static constexpr OpDef kDef = MakeDef<T>(); \
    return kDef;                                \
  }
