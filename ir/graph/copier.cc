// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/copier.h"

#include "absl/container/flat_hash_set.h"

namespace forge::ir {
AnyOp WithBodies(const AnyOp& op, const absl::flat_hash_map<const Function*, Function*>& bodies) {
  std::shared_ptr<void> copy = op.def().make(op.self());
  for (const Field& f : op.def().fields) {
    if (f.kind != FieldKind::kFunction) continue;
    Function*& body = *static_cast<Function**>(f.at(copy.get()));
    if (const auto at = bodies.find(body); at != bodies.end()) body = at->second;
  }
  return AnyOp(op.def(), std::move(copy));
}

std::vector<Function*> BodiesOf(const AnyOp& op) {
  std::vector<Function*> out;
  for (const Field& f : op.def().fields)
    if (f.kind == FieldKind::kFunction)
      out.push_back(*static_cast<Function* const*>(f.at_const(op.self())));
  return out;
}

namespace {

void CollectBodies(const Function& f, absl::flat_hash_set<const Function*>& seen,
                   std::vector<const Function*>& out) {
  for (const Node& n : f.nodes())
    for (const Function* body : BodiesOf(n.op)) {
      if (body == nullptr || !seen.insert(body).second) continue;
      out.push_back(body);
      CollectBodies(*body, seen, out);
    }
}

}  // namespace

std::vector<const Function*> BodiesUnder(const Function& f) {
  absl::flat_hash_set<const Function*> seen;
  std::vector<const Function*> out;
  CollectBodies(f, seen, out);
  return out;
}

void Function::MapBodies(const Bodies& bodies) {
  for (Node& n : nodes_)
    if (!BodiesOf(n.op).empty()) n.op = WithBodies(n.op, bodies);
}

Copier::Copier(const Function& in, Function& out, Substitutes with)
    : in_(in), out_(out), with_(std::move(with)) {}

void Copier::CopyArguments(TypeSpan types) {
  for (size_t i = 0; i < in_.arguments().size(); ++i) {
    const Function::Input& a = in_.arguments()[i];
    Map(a.value, out_.Argument(a.name, types.empty() ? TypeOf(a.value) : types[i]));
  }
}

Values Copier::CopyNode(const Node& node) {
  const AnyOp op = OpOf(node);
  const Values in = OperandsOf(node);
  std::vector<uint32_t> ids;
  for (const Value& v : in) ids.push_back(v ? v.id : kAbsent);
  // A pass may have given a body results of other types; a clone has the same bodies.
  const bool same_bodies = !with_.bodies.empty() || BodiesOf(op).empty();
  const bool same = with_.symbols == nullptr && same_bodies && HasTypesOf(node, ids);
  return Append(node, op, in, !same);
}

Values Copier::CopyNode(const Node& node, const AnyOp& op) {
  return Append(node, op, OperandsOf(node), true);
}

Values Copier::Append(const Node& node, const AnyOp& op, ValueSpan in, bool infer) {
  const Function::Scope scope(out_, node.from);
  const ValueSpan operands = in.first(node.in.size()), runtime = in.subspan(node.in.size());
  Values made;
  if (infer || !out_.status().ok()) {
    std::vector<Function::RuntimeField> fields;
    for (size_t i = 0; i < runtime.size(); ++i)
      fields.push_back({op.def().fields[node.runtime_attributes[i].field].name, runtime[i]});
    made = out_.AddRuntimeValued(op, operands, fields);
    if (out_.status().ok() && made.size() != node.outs)
      out_.Fail(Internal("{} has {} results in place of {}", op.name(), made.size(), node.outs));
    if (!out_.status().ok()) return made;
  } else {
    Node copy{.op = op,
              .in = out_.Ids(op, operands),
              .runtime_attributes = node.runtime_attributes,
              .from = nullptr};
    for (size_t i = 0; i < runtime.size(); ++i) copy.runtime_attributes[i].value = runtime[i].id;
    Types types;
    for (uint16_t k = 0; k < node.outs; ++k) types.push_back(in_.type(node.first_out + k));
    made = out_.Append(std::move(copy), std::move(types));
  }
  for (uint16_t k = 0; k < node.outs; ++k) {
    const Type& before = in_.type(node.first_out + k);
    if (infer && before.is_tensor() && made[k].type().is_tensor())
      out_.SetEncoding(made[k], before.encoding());
    Map(node.first_out + k, made[k]);
  }
  return made;
}

Values Copier::CopyUntyped(const Node& node, const AnyOp& op) {
  const Function::Scope scope(out_, node.from);
  const Values in = OperandsOf(node);
  Node copy{.op = op,
            .in = out_.Ids(op, ValueSpan(in).first(node.in.size())),
            .runtime_attributes = node.runtime_attributes,
            .from = nullptr};
  for (size_t i = 0; i < node.runtime_attributes.size(); ++i)
    copy.runtime_attributes[i].value = in[node.in.size() + i].id;
  const Values made = out_.Append(std::move(copy), Types(node.outs, Type::Unknown()));
  for (uint16_t k = 0; k < node.outs; ++k) Map(node.first_out + k, made[k]);
  return made;
}

void Copier::Map(uint32_t value, Value made) {
  Set(value, made);
  out_.SetName(made, in_.NameOf(value));
}

Value Copier::operator[](uint32_t value) {
  if (value == kAbsent) return {};
  if (const auto at = map_.find(value); at != map_.end()) return at->second;
  if (with_.missing) {
    const Value made = with_.missing(value);
    return map_[value] = made;
  }
  Variable* const v = in_.VariableOf(value);
  if (v == nullptr) return {};
  Map(value, out_.ReadAs(VariableFor(v), TypeOf(value)));
  return map_[value];
}

Values Copier::Operands(std::span<const uint32_t> values) {
  Values out;
  out.reserve(values.size());
  for (uint32_t v : values) out.push_back((*this)[v]);
  return out;
}

Values Copier::OperandsOf(const Node& node) {
  Values out = Operands(node.in);
  for (const RuntimeAttribute& l : node.runtime_attributes) out.push_back((*this)[l.value]);
  return out;
}

absl::Status Copier::Finish() {
  for (const auto& r : in_.results()) out_.Return(r.name, (*this)[r.value]);
  for (const auto& u : in_.updates()) out_.Store(VariableFor(u.variable), (*this)[u.value]);
  return out_.status();
}

absl::Status Copier::CopyAll() {
  uint32_t next = 0;
  for (const Node& node : in_.nodes()) {
    CarryInputs(next, node.first_out);
    CopyNode(node);
    next = node.first_out + node.outs;
  }
  CarryInputs(next, in_.value_count());
  out_.Fail(in_.status());
  return Finish();
}

// Arguments and variables among the values, in the order they were added in.
void Copier::CarryInputs(uint32_t from, uint32_t to) {
  for (uint32_t v = from; v < to; ++v) {
    const Function::Origin& o = in_.origin(v);
    if (o.kind == Function::Origin::kArgument)
      Map(v, out_.Argument(in_.arguments()[o.index].name, TypeOf(v)));
    else if (o.kind == Function::Origin::kVariable)
      (*this)[v];
  }
}

Variable* Copier::VariableFor(Variable* v) const {
  const auto at = with_.variables.find(v);
  return at != with_.variables.end() ? at->second : v;
}

Type Copier::TypeOf(uint32_t value) const {
  return with_.symbols != nullptr ? in_.type(value).Bind(*with_.symbols) : in_.type(value);
}

AnyOp Copier::OpOf(const Node& node) const {
  const AnyOp op = with_.symbols != nullptr ? node.op.Bind(*with_.symbols) : node.op;
  return with_.bodies.empty() || BodiesOf(op).empty() ? op : WithBodies(op, with_.bodies);
}

bool Copier::HasTypesOf(const Node& node, std::span<const uint32_t> in) const {
  const auto same = [&](uint32_t before, uint32_t after) {
    if (before == kAbsent || after == kAbsent) return before == after;
    return in_.type(before) == out_.type(after);
  };
  for (size_t i = 0; i < node.in.size(); ++i)
    if (!same(node.in[i], in[i])) return false;
  for (size_t i = 0; i < node.runtime_attributes.size(); ++i)
    if (!same(node.runtime_attributes[i].value, in[node.in.size() + i])) return false;
  return true;
}

Values Inline(const Function& body, Function& f, ValueSpan in) {
  Copier copy(body, f);
  for (size_t i = 0; i < body.arguments().size(); ++i) copy.Set(body.arguments()[i].value, in[i]);
  for (const Node& node : body.nodes()) copy.CopyNode(node);
  Values out;
  for (const Function::Result& r : body.results()) out.push_back(copy[r.value]);
  return out;
}

}  // namespace forge::ir
