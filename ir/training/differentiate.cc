// SPDX-License-Identifier: Apache-2.0
#include "ir/training/differentiate.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/graph/capture_reads.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/scalar_math.h"

namespace forge::ir {
namespace {

Values ValuesOf(Function& f, std::span<const uint32_t> ids) {
  Values out;
  for (const uint32_t v : ids) out.push_back(v == kAbsent ? Value{} : f.value(v));
  return out;
}

// One sweep over the nodes of a function, from its last to its first.
class Sweep : BodyGradients {
 public:
  Sweep(Function& f, ValueSpan with, const ActivationPlan* activations) : f_(f) {
    if (activations != nullptr) again_.emplace(f, *activations);
    for (const Value& v : with) {
      depends_.insert(v.id);
      if (const Variable* variable = f.VariableOf(v.id)) variables_.insert(variable);
    }
    for (const Node& node : f.nodes()) {
      if (std::ranges::none_of(node.in, [&](uint32_t v) { return depends_.contains(v); })) continue;
      for (uint32_t k = 0; k < node.outs; ++k) depends_.insert(node.first_out + k);
    }
  }

  absl::Status Run(ValueSpan of, ValueSpan seeds) {
    const size_t nodes = f_.nodes().size();
    for (size_t i = 0; i < of.size(); ++i) Add(of[i], seeds[i]);
    for (size_t i = nodes; i-- > 0;) FORGE_RETURN_IF_ERROR(Visit(i));
    return f_.status();
  }

  Value Gradient(Value v) const {
    const auto found = gradients_.find(v.id);
    return found == gradients_.end() ? Value{} : found->second;
  }

 private:
  void Add(Value to, Value gradient) {
    if (!to || !gradient || !depends_.contains(to.id)) return;
    Value& sum = gradients_[to.id];
    sum = sum ? sum + gradient : gradient;
  }

  absl::Status Visit(size_t i) {
    const Node& node = f_.nodes()[i];
    Values out, dout;
    bool flows = false;
    for (uint32_t v = node.first_out; v < node.first_out + node.outs; ++v) {
      out.push_back(f_.value(v));
      dout.push_back(Gradient(out.back()));
      flows = flows || bool(dout.back());
    }
    if (!flows) return absl::OkStatus();
    const OpDef& def = node.op.def();
    if (def.gradient == nullptr) {
      if (def.no_gradient == "zero") return absl::OkStatus();
      return Unimplemented("node '{}' ({}) has no gradient: {}",
                           node.from ? node.from->ToText() : "", node.op.name(), def.no_gradient);
    }
    FORGE_RETURN_IF_ERROR(CheckBodies(node));
    at_ = &node;
    const Values in = ValuesOf(f_, node.in), read = again_ ? again_->ValuesFor(i, in) : in;
    if (again_) out = again_->ValuesFor(i, out);
    const Function::Scope scope(f_, MadeBy("differentiate", {&node.from, 1}));
    const Values dx = node.op.Gradient({f_, read, out, dout, this});
    FORGE_RETURN_IF_ERROR(f_.status());
    for (size_t k = 0; k < dx.size() && k < in.size(); ++k) Add(in[k], dx[k]);
    return f_.status();
  }

  // A gradient would miss what a body reads without taking it as a capture.
  absl::Status CheckBodies(const Node& node) const {
    for (const Variable* v : ReadInBodies(node))
      if (variables_.contains(v))
        return Unimplemented("a body of {} reads '{}', whose gradient is wanted, without a capture",
                             node.op.name(), v->name);
    return absl::OkStatus();
  }

  bool Wants(size_t operand) const override { return depends_.contains(at_->in[operand]); }
  Values Append(Function& body, ValueSpan of, ValueSpan seeds, ValueSpan with) const override {
    absl::StatusOr<Values> gradients = Differentiate(body, of, seeds, with);
    if (gradients.ok()) return *std::move(gradients);
    body.Fail(gradients.status());
    return Values(with.size());
  }

  Function& f_;
  std::optional<Rematerialiser> again_;
  const Node* at_ = nullptr;                        // the node whose rule is running
  absl::flat_hash_set<uint32_t> depends_;           // values that depend on one of `with`
  absl::flat_hash_set<const Variable*> variables_;  // among `with`
  absl::flat_hash_map<uint32_t, Value> gradients_;
};

}  // namespace

absl::StatusOr<Values> Differentiate(Function& f, ValueSpan of, ValueSpan seeds, ValueSpan with,
                                     const ActivationPlan* activations) {
  FORGE_RETURN_IF_ERROR(f.status());
  if (of.size() != seeds.size())
    return InvalidArgument("{} values have {} gradients", of.size(), seeds.size());
  for (size_t i = 0; i < of.size(); ++i) {
    const Type& type = of[i].type();
    if (!type.is_tensor() || !Has(kFloatTypes, type.dtype()) || type != seeds[i].type())
      return InvalidArgument("a value of type {} has no gradient of type {}", type.ToText(),
                             seeds[i].type().ToText());
  }
  Sweep sweep(f, with, activations);
  FORGE_RETURN_IF_ERROR(sweep.Run(of, seeds));
  Values out;
  for (const Value& v : with) {
    const Value gradient = sweep.Gradient(v);
    out.push_back(
        gradient ? gradient
                 : f(Fill{.value = 0, .dtype = v.type().dtype(), .shape = v.type().shape()}, {}));
  }
  FORGE_RETURN_IF_ERROR(f.status());
  return out;
}

absl::StatusOr<Values> Differentiate(Function& f, Value of, ValueSpan with,
                                     const ActivationPlan* activations) {
  FORGE_RETURN_IF_ERROR(f.status());
  const Type& type = of.type();
  if (!type.is_tensor() || type.rank() != 0 || !Has(kFloatTypes, type.dtype()))
    return InvalidArgument("only a scalar float can be differentiated, not {}", type.ToText());
  return Differentiate(f, {{of}}, {{f(Fill{.value = 1, .dtype = type.dtype()}, {})}}, with,
                       activations);
}

}  // namespace forge::ir
