// SPDX-License-Identifier: Apache-2.0
// Type erasure of ops. Included only by the .cc of an op.
#pragma once
#include <memory>

#include "ir/op/op.h"
#include "ir/op/signature.h"

namespace forge::ir {

// Rules that ops of a kind share.
absl::Status EvaluateMovement(const AnyOp& op, Eval& e);
Cost CostPerElement(const AnyOp& op, TypeSpan in);
Cost CostOfMovement(const AnyOp& op, TypeSpan in);  // nothing

// The parts of a composite that follow from its decomposition; in ir/ops/parts.cc. Infers the types
// by running the decomposition.
absl::StatusOr<Types> InferByParts(const AnyOp& op, TypeSpan in);
// Evaluates the decomposition in f64; results are rounded once, when they are stored.
absl::Status EvaluateByParts(const AnyOp& op, Eval& e);
// The sum over the parts; `terms` is the maximum.
Cost CostOfParts(const AnyOp& op, TypeSpan in);
// Propagates an error bound through the parts; see S in docs/semantics.md.
absl::Status MagnitudeByParts(const AnyOp& op, Eval& e);
// Reverse-mode differentiation of the decomposition, which is computed again. An operand that is
// given twice gets its whole gradient at the first place.
Values GradientByParts(const AnyOp& op, const GradArgs& g);
// The op over the real and imaginary parts of its operands, by OpDef::on_complex or its scalar
// expression; in ir/ops/complex/parts.cc. Empty without either.
Values DecomposeComplex(const AnyOp& op, Function& f, ValueSpan in);
// Calls a rule with the results that OpInfo::saved adds; appends them if they were not saved.
using GradientRule = Values (*)(const AnyOp& op, const GradArgs& g);
Values GradientWithSaved(const AnyOp& op, const GradArgs& g, GradientRule rule);

// Returns the attributes behind a pointer; ops without attributes store none.
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
const T& Self(const AnyOp& op) {
  return Self<T>(op.self());
}

// True when `info.saved` is empty or the name of a bool attribute.
constexpr bool NamesSaved(const OpInfo& info, Fields fields) {
  if (info.saved.empty()) return true;
  for (const Field& f : fields)
    if (f.name == info.saved) return f.kind == FieldKind::kBool;
  return false;
}

// Row: the struct that has kFields, if not T
template <class T, class Row = T>
constexpr Fields FieldsOf() {
  if constexpr (requires { Row::kFields; }) {
    static_assert(FieldCount<T>() == std::size(Row::kFields), "every attribute stands in kFields");
    return Row::kFields;
  } else {
    static_assert(std::is_empty_v<T>, "attributes without kFields");
    return {};
  }
}

template <class T>
std::shared_ptr<void> MakeAttributes(const void* from) {
  return from ? std::make_shared<T>(*static_cast<const T*>(from)) : std::make_shared<T>();
}

template <class T>
concept Evaluates = requires(const T op, Eval& e) { op.evaluate(e); };

// The parts that ops of every kind have.
template <class T>
constexpr OpDef MakeCommon() {
  OpDef d;
  d.fields = FieldsOf<T>();
  if constexpr (!std::is_empty_v<T>) d.make = &MakeAttributes<T>;
  if constexpr (Evaluates<T>)
    d.evaluate = [](const AnyOp& op, Eval& e) { return Self<T>(op).evaluate(e); };
  return d;
}

template <class T>
constexpr void SetGradient(OpDef& d) {
  if constexpr (requires(const T op, const GradArgs& g) { op.gradient(g); })
    d.gradient = [](const AnyOp& op, const GradArgs& g) {
      constexpr GradientRule kRule = [](const AnyOp& self, const GradArgs& args) {
        return Self<T>(self).gradient(args);
      };
      if constexpr (requires { requires !T::kInfo.saved.empty(); })
        return GradientWithSaved(op, g, kRule);
      else
        return kRule(op, g);
    };
  else if constexpr (Composite<T> && !HasGradient<T>)
    d.gradient = &GradientByParts;
  else if constexpr (Is<decltype(T::gradient), NotDifferentiable>)
    d.no_gradient = T::gradient.why;
  else
    d.no_gradient = Is<decltype(T::gradient), Zero> ? "zero" : "pending";
}

template <Op T>
  requires(!ElementWise<T>)
constexpr OpDef MakeDef() {
  static_assert(NamesSaved(T::kInfo, FieldsOf<T>()), "OpInfo::saved names a bool in kFields");
  OpDef d = MakeCommon<T>();
  d.info = T::kInfo;
  d.cases = [](const OpDef&) { return T::cases(); };
  SetGradient<T>(d);
  if constexpr (requires(const T op, TypeSpan in) { op.infer(in); })
    d.infer = [](const AnyOp& op, TypeSpan in) { return Self<T>(op).infer(in); };
  else
    d.infer = HasInfer<T> ? &InferBySignature : &InferByParts;
  if constexpr (Composite<T>)
    d.decompose = [](const AnyOp& op, Function& f, ValueSpan in) {
      return Self<T>(op).decompose(f, in);
    };
  if constexpr (Movement<T>) {
    d.map = [](const AnyOp& op, TypeSpan in, const Dims& at) { return Self<T>(op).map(in, at); };
    if constexpr (!Evaluates<T>) d.evaluate = &EvaluateMovement;
    d.cost = &CostOfMovement;
    d.on_complex = [](const AnyOp&) { return OnComplex::kEach; };
  }
  constexpr bool kOnComplex = requires(const T op) { op.on_complex(); };
  if constexpr (kOnComplex) d.on_complex = [](const AnyOp& op) { return Self<T>(op).on_complex(); };
  if constexpr (requires(const T op, Function& f, ValueSpan in) { op.decompose_complex(f, in); })
    d.decompose_complex = [](const AnyOp& op, Function& f, ValueSpan in) {
      return Self<T>(op).decompose_complex(f, in);
    };
  else if constexpr (kOnComplex ||
                     Movement<T>)  // GCC 12 with sanitizers takes no test of a pointer.
    d.decompose_complex = &DecomposeComplex;
  if constexpr (requires(const T op, TypeSpan in) { op.cost(in); })
    d.cost = [](const AnyOp& op, TypeSpan in) { return Self<T>(op).cost(in); };
  else if constexpr (!Movement<T>)
    d.cost = HasCost<T> ? &CostPerElement : &CostOfParts;
  if constexpr (Composite<T> && !Movement<T> && !Evaluates<T>) {
    d.evaluate = &EvaluateByParts;
    d.magnitude = &MagnitudeByParts;
  }
  if constexpr (requires(const T op, Eval& e) { op.magnitude(e); })
    d.magnitude = [](const AnyOp& op, Eval& e) { return Self<T>(op).magnitude(e); };
  if constexpr (requires(const T op, TypeSpan in, Known known) { op.contents(in, known); })
    d.contents = [](const AnyOp& op, TypeSpan in, Known known) {
      return Self<T>(op).contents(in, known);
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
