// SPDX-License-Identifier: Apache-2.0
// What follows from a composite's decomposition; see ir/op/define.h.
#include <algorithm>
#include <cmath>
#include <map>

#include "ir/graph/interpreter.h"
#include "ir/op/define.h"
#include "ir/op/elements.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"

namespace forge::ir {
namespace {

using Operands = std::span<const HostValue* const>;

// The decomposition of an op as a function of those operands that are given.
class Parts {
 public:
  Parts(const AnyOp& op, TypeSpan in) : body_(module_.AddFunction("parts")) {
    Values operands;
    for (const Type& t : in) {
      const bool tensor = t.is_tensor();
      operands.push_back(t ? body_->Argument(fmt::format("x{}", operands.size()),
                                             tensor ? t.With(EncodingRef()) : t)
                           : Value{});
    }
    const Values made = op.Decompose(*body_, operands);
    if (made.empty()) body_->Fail(Internal("{} has no parts", op.ToText()));
    for (size_t i = 0; i < made.size(); ++i) body_->Return(fmt::format("y{}", i), made[i]);
  }
  const Function& body() const { return *body_; }

 private:
  Module module_;
  Function* body_;
};

// Floats become f64, in which parts are evaluated, and complex numbers c128; everything else stays.
absl::StatusOr<HostValue> InF64(const HostValue& v) {
  if (v.dtype() == DType::kC64) {
    FORGE_ASSIGN_OR_RETURN(HostValue wide, HostValue::Zeros(DType::kC128, v.shape()));
    Store(Complexes(v), wide);
    return wide;
  }
  if (!Has(kFloatTypes, v.dtype()) || v.dtype() == DType::kF64) return v;
  FORGE_ASSIGN_OR_RETURN(HostValue wide, HostValue::Zeros(DType::kF64, v.shape()));
  Store(Doubles(v), wide);
  return wide;
}

Types TypesGiven(Operands in) {
  Types out;
  for (const HostValue* v : in) out.push_back(v ? v->type() : Type());
  return out;
}

// ---- running error bound ------------------------------------------------------------------------

// The rounding unit at which errors are propagated: large enough to stand out in f64, small enough
// for the bound to be linear in it.
constexpr double kUnit = 0x1p-24;

// A tensor in f64 and how far a device's elements may lie from its, in rounding units of the
// accumulator.
struct Rough {
  HostValue value;
  std::vector<double> error;  // of each element, or of both parts of a complex one; empty: exact
};
using RoughOperands = std::span<const Rough* const>;

bool RoundsSums(const AnyOp& op, TypeSpan in) {
  return op.def().scalar == nullptr && !(op.Cost(in).terms == Dim(0));
}

HostValue Absolute(const HostValue& v) {
  if (!Has(kFloatTypes, v.dtype())) return v;
  std::vector<double> all = Doubles(v);
  for (double& x : all) x = std::fabs(x);
  HostValue out = v;
  Store(all, out);
  return out;
}

// The tensor with `times` its errors added.
HostValue Shifted(const HostValue& v, std::span<const double> error, double times) {
  std::vector<double> all = Doubles(v);
  for (size_t i = 0; i < all.size(); ++i) all[i] += times * error[i];
  HostValue out = v;
  Store(all, out);
  return out;
}

using Evaluator = absl::StatusOr<std::vector<HostValue>> (*)(const AnyOp&, Operands);

// Raises `furthest` to how far each element of `there` is from that of `at_rest`.
void RaiseTo(std::vector<double>& furthest, const HostValue& at_rest, const HostValue& there) {
  const std::vector<double> a = Doubles(at_rest), b = Doubles(there);
  furthest.resize(a.size());
  for (size_t e = 0; e < a.size(); ++e) {
    const double off = std::fabs(a[e] - b[e]) / kUnit;
    if (std::isfinite(off)) furthest[e] = std::fmax(furthest[e], off);
  }
}

// Adds to the error of each result how far it moves with the errors of each operand. What a select
// or a comparison of inexact numbers decides counts as decided.
absl::Status AddPropagated(Evaluator run, const AnyOp& op, std::vector<HostValue> in,
                           RoughOperands from, std::vector<Rough>& out) {
  std::vector<const HostValue*> operands;
  for (size_t i = 0; i < in.size(); ++i) operands.push_back(from[i] ? &in[i] : nullptr);
  FORGE_ASSIGN_OR_RETURN(const std::vector<HostValue> at_rest, run(op, operands));
  for (size_t i = 0; i < in.size(); ++i) {
    if (from[i] == nullptr || from[i]->error.empty()) continue;
    std::vector<std::vector<double>> furthest(out.size());
    for (const double side : {kUnit, -kUnit}) {
      const HostValue moved = Shifted(in[i], from[i]->error, side);
      operands[i] = &moved;
      FORGE_ASSIGN_OR_RETURN(const std::vector<HostValue> there, run(op, operands));
      for (size_t k = 0; k < out.size(); ++k)
        if (!out[k].error.empty()) RaiseTo(furthest[k], at_rest[k], there[k]);
    }
    operands[i] = &in[i];
    for (size_t k = 0; k < out.size(); ++k)
      for (size_t e = 0; e < furthest[k].size(); ++e) out[k].error[e] += furthest[k][e];
  }
  return absl::OkStatus();
}

// What one primitive rounds by itself, on exact operands.
absl::StatusOr<std::vector<std::vector<double>>> OwnErrors(const AnyOp& op, Operands absolute,
                                                           const std::vector<HostValue>& results) {
  std::vector<std::vector<double>> out(results.size());
  const Dim terms = op.Cost(TypesGiven(absolute)).terms;
  std::vector<HostValue> sums;
  if (RoundsSums(op, TypesGiven(absolute))) {
    FORGE_ASSIGN_OR_RETURN(sums, Magnitudes(op, absolute));
  }
  for (size_t k = 0; k < results.size(); ++k) {
    if (!Has(kFloatTypes, results[k].dtype())) continue;
    out[k].resize(static_cast<size_t>(results[k].elements()));
    const std::vector<double> of = Doubles(sums.empty() ? results[k] : sums[k]);
    const ScalarDef* scalar = op.def().scalar;
    for (size_t e = 0; e < of.size(); ++e) {
      double own = 0;
      if (scalar != nullptr)
        own = std::fmax(2 * scalar->info.ulps, 1) * std::fmax(std::fabs(of[e]), scalar->info.scale);
      else if (!sums.empty())
        own = 4 * std::sqrt(static_cast<double>(terms.constant())) * std::fabs(of[e]);
      out[k][e] = std::isfinite(own) ? own : 0;
    }
  }
  return out;
}

absl::StatusOr<std::vector<Rough>> RoughParts(const AnyOp& op, RoughOperands in);

bool AnyComplex(RoughOperands in) {
  return std::any_of(in.begin(), in.end(), [](const Rough* r) {
    return r != nullptr && Has(kComplexTypes, r->value.dtype());
  });
}

absl::StatusOr<std::vector<Rough>> RoughResults(const AnyOp& op, RoughOperands in) {
  if (op.is_view()) {
    const HostValue* x = &in[0]->value;
    FORGE_ASSIGN_OR_RETURN(std::vector<HostValue> y, Evaluate(op, {&x, 1}));
    return std::vector<Rough>{{std::move(y[0]), in[0]->error}};
  }
  if (op.def().evaluate == &EvaluateByParts || AnyComplex(in)) return RoughParts(op, in);
  std::vector<HostValue> values, absolute;
  std::vector<const HostValue*> operands, magnitudes;
  for (const Rough* r : in) {
    values.push_back(r ? r->value : HostValue());
    absolute.push_back(r ? Absolute(r->value) : HostValue());
  }
  for (size_t i = 0; i < in.size(); ++i) {
    operands.push_back(in[i] ? &values[i] : nullptr);
    magnitudes.push_back(in[i] ? &absolute[i] : nullptr);
  }
  FORGE_ASSIGN_OR_RETURN(std::vector<HostValue> results, Evaluate(op, operands));
  FORGE_ASSIGN_OR_RETURN(std::vector<std::vector<double>> own, OwnErrors(op, magnitudes, results));
  std::vector<Rough> out;
  for (size_t k = 0; k < results.size(); ++k)
    out.push_back({std::move(results[k]), std::move(own[k])});
  const bool sum = RoundsSums(op, TypesGiven(operands));
  FORGE_RETURN_IF_ERROR(AddPropagated(sum ? &Magnitudes : &Evaluate, op,
                                      sum ? std::move(absolute) : std::move(values), in, out));
  return out;
}

absl::StatusOr<std::vector<Rough>> RoughParts(const AnyOp& op, RoughOperands in) {
  Types types;
  for (const Rough* r : in) types.push_back(r ? r->value.type() : Type());
  const Parts parts(op, types);
  const Function& f = parts.body();
  FORGE_RETURN_IF_ERROR(f.status());
  std::vector<Rough> all(f.value_count());
  size_t argument = 0;
  for (const Rough* r : in)
    if (r != nullptr) all[f.arguments()[argument++].value] = *r;
  for (const Node& node : f.nodes()) {
    std::vector<const Rough*> operands;
    for (uint32_t v : node.in) operands.push_back(v == kAbsent ? nullptr : &all[v]);
    FORGE_ASSIGN_OR_RETURN(std::vector<Rough> made, RoughResults(node.op, operands));
    for (size_t k = 0; k < made.size(); ++k) all[node.first_out + k] = std::move(made[k]);
  }
  std::vector<Rough> out;
  for (const Function::Result& r : f.results()) out.push_back(all[r.value]);
  return out;
}

}  // namespace

absl::StatusOr<Types> InferByParts(const AnyOp& op, TypeSpan in) {
  const Parts parts(op, in);
  FORGE_RETURN_IF_ERROR(parts.body().status());
  Types out;
  for (const Function::Result& r : parts.body().results())
    out.push_back(parts.body().type(r.value));
  return out;
}

absl::Status EvaluateByParts(const AnyOp& op, Eval& e) {
  std::vector<HostValue> wide;
  Types types;
  for (size_t i = 0; i < e.inputs(); ++i) {
    types.emplace_back();
    if (e.in(i) == nullptr) continue;
    FORGE_ASSIGN_OR_RETURN(HostValue v, InF64(*e.in(i)));
    types.back() = v.type();
    wide.push_back(std::move(v));
  }
  const Parts parts(op, types);
  FORGE_RETURN_IF_ERROR(parts.body().status());
  std::vector<const HostValue*> arguments;
  for (const HostValue& v : wide) arguments.push_back(&v);
  FORGE_ASSIGN_OR_RETURN(std::vector<HostValue> results, e.Call(parts.body(), arguments));
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].dtype() == e.out(i).dtype())
      e.out(i) = std::move(results[i]);
    else if (Has(kComplexTypes, results[i].dtype()))
      Store(Complexes(results[i]), e.out(i));
    else
      Store(Doubles(results[i]), e.out(i));
  }
  return absl::OkStatus();
}

Cost CostOfParts(const AnyOp& op, TypeSpan in) {
  const Parts parts(op, in);
  Cost sum{.flops = 0, .terms = 0};
  for (const Node& node : parts.body().nodes()) {
    const Cost part = node.op.Cost(parts.body().TypesOf(node.in));
    sum.flops = sum.flops + part.flops;
    sum.terms = Max(sum.terms, part.terms);
  }
  return sum;
}

// The bound is 4 u sqrt(K) S, so S is the running bound, counted in u, over 4 sqrt(K).
absl::Status MagnitudeByParts(const AnyOp& op, Eval& e) {
  std::vector<Rough> operands(e.inputs());
  std::vector<const Rough*> in;
  Types types;
  for (size_t i = 0; i < e.inputs(); ++i) {
    if (e.in(i) != nullptr) {
      FORGE_ASSIGN_OR_RETURN(operands[i].value, InF64(*e.in(i)));
    }
    in.push_back(e.in(i) ? &operands[i] : nullptr);
    types.push_back(e.in(i) ? operands[i].value.type() : Type());
  }
  FORGE_ASSIGN_OR_RETURN(std::vector<Rough> results, RoughParts(op, in));
  const double terms = static_cast<double>(std::max<int64_t>(1, op.Cost(types).terms.constant()));
  for (size_t i = 0; i < results.size(); ++i) {
    std::vector<double>& error = results[i].error;
    const auto n = static_cast<size_t>(e.out(i).elements());
    if (Has(kComplexTypes, e.out(i).dtype()) && !error.empty())
      for (size_t k = 0; k < n; ++k) error[k] = std::fmax(error[2 * k], error[2 * k + 1]);
    error.resize(n);
    for (double& v : error) v /= 4 * std::sqrt(terms);
    Store(error, e.out(i));
  }
  return absl::OkStatus();
}

Values GradientByParts(const AnyOp& op, const GradArgs& g) {
  Function& f = g.fn;
  std::map<uint32_t, Value> gradients;  // so far, by value
  const auto add = [&](Value to, Value gradient) {
    if (!to || !gradient) return;
    Value& sum = gradients[to.id];
    sum = sum ? sum + gradient : gradient;
  };
  const size_t first = f.nodes().size();
  const Values made = op.Decompose(f, g.in);
  for (size_t i = 0; i < made.size() && i < g.dout.size(); ++i) add(made[i], g.dout[i]);
  const auto values = [&](std::span<const uint32_t> ids) {
    Values out;
    for (uint32_t v : ids) out.push_back(v == kAbsent ? Value{} : f.value(v));
    return out;
  };
  for (size_t i = f.nodes().size(); i-- > first && f.status().ok();) {
    const Node& node = f.nodes()[i];
    Values out, dout;
    for (uint32_t v = node.first_out; v < node.first_out + node.outs; ++v) {
      out.push_back(f.value(v));
      dout.push_back(gradients.contains(v) ? gradients[v] : Value{});
    }
    if (std::none_of(dout.begin(), dout.end(), [](const Value& v) { return bool(v); })) continue;
    const OpDef& def = node.op.def();
    if (def.gradient == nullptr && def.no_gradient != "zero")
      f.Fail(Unimplemented("{} has no gradient: that of its part {} is {}", op.name(),
                           node.op.name(), def.no_gradient));
    const Values in = values(node.in), dx = node.op.Gradient({f, in, out, dout});
    for (size_t k = 0; k < dx.size(); ++k) add(in[k], dx[k]);
  }
  Values out;
  for (const Value& v : g.in) {
    out.push_back(v && gradients.contains(v.id) ? gradients[v.id] : Value{});
    if (v) gradients.erase(v.id);
  }
  return out;
}

Values GradientWithSaved(const AnyOp& op, const GradArgs& g, GradientRule rule) {
  if (op.saves()) return rule(op, g);
  const AnyOp saving = op.Saving(true);
  const Values out = g.fn.Add(saving, g.in);
  if (!g.fn.status().ok()) return Values(g.in.size());
  Values dout(g.dout.begin(), g.dout.end());
  dout.resize(out.size());
  return rule(saving, {g.fn, g.in, out, dout, g.bodies});
}

}  // namespace forge::ir
