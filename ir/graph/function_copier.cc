// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/function_copier.h"

namespace forge::ir {
namespace {

Function*& BodyAt(const Field& f, void* record) { return *static_cast<Function**>(f.at(record)); }

AnyOp WithBodies(const AnyOp& op, const FunctionCopier::Bodies& bodies) {
  std::shared_ptr<void> copy = op.def().make(op.self());
  for (const Field& f : op.def().fields) {
    if (f.kind != FieldKind::kFunction) continue;
    Function*& body = BodyAt(f, copy.get());
    if (const auto at = bodies.find(body); at != bodies.end()) body = at->second;
  }
  return AnyOp(op.def(), std::move(copy));
}

}  // namespace

std::vector<Function*> BodiesOf(const AnyOp& op) {
  std::vector<Function*> out;
  for (const Field& f : op.def().fields)
    if (f.kind == FieldKind::kFunction)
      out.push_back(*static_cast<Function* const*>(f.at_const(op.self())));
  return out;
}

void FunctionCopier::MapBodies(Function& f, const Bodies& bodies) {
  for (Node& n : f.nodes_)
    if (!BodiesOf(n.op).empty()) n.op = WithBodies(n.op, bodies);
}

Variable* FunctionCopier::Map(Variable* v) const {
  const auto at = variables.find(v);
  return at != variables.end() ? at->second : v;
}

void FunctionCopier::Copy(const Function& from, Function& to) const {
  to.nodes_ = from.nodes_;
  to.types_ = from.types_;
  to.origins_ = from.origins_;
  to.arguments_ = from.arguments_;
  to.reads_ = from.reads_;
  to.results_ = from.results_;
  to.updates_ = from.updates_;
  to.names_ = from.names_;
  to.scope_ = from.scope_;
  to.status_ = from.status_;
  to.read_of_.clear();
  for (auto& r : to.reads_) {
    r.variable = Map(r.variable);
    to.read_of_[r.variable] = r.value;
  }
  for (auto& u : to.updates_) u.variable = Map(u.variable);
  MapBodies(to, bodies);
}

void FunctionCopier::Reorder(Function& f, std::span<const uint32_t> order) {
  std::vector<uint32_t> to(f.value_count());
  uint32_t next = 0;
  for (uint32_t v = 0; v < f.value_count(); ++v)
    if (f.origins_[v].kind != Function::Origin::kNode) to[v] = next++;
  for (uint32_t n : order)
    for (uint32_t k = 0; k < f.nodes_[n].outs; ++k) to[f.nodes_[n].first_out + k] = next++;
  const auto move = [&](uint32_t& v) { v = v == kAbsent ? kAbsent : to[v]; };

  std::vector<Type> types(f.types_.size());
  std::vector<Function::Origin> origins(f.origins_.size());
  for (uint32_t v = 0; v < to.size(); ++v) {
    types[to[v]] = std::move(f.types_[v]);
    origins[to[v]] = f.origins_[v];
  }
  std::vector<Node> nodes;
  for (uint32_t n : order) {
    Node& node = nodes.emplace_back(std::move(f.nodes_[n]));
    move(node.first_out);
    for (uint32_t& v : node.in) move(v);
    for (Late& l : node.late) move(l.value);
    for (uint32_t k = 0; k < node.outs; ++k)
      origins[node.first_out + k].index = static_cast<uint32_t>(nodes.size() - 1);
  }
  f.types_ = std::move(types);
  f.origins_ = std::move(origins);
  f.nodes_ = std::move(nodes);
  for (auto& a : f.arguments_) move(a.value);
  for (auto& r : f.reads_) f.read_of_[r.variable] = r.value = to[r.value];
  for (auto& r : f.results_) move(r.value);
  for (auto& u : f.updates_) move(u.value);
  absl::flat_hash_map<uint32_t, std::string> names;
  for (auto& [v, name] : f.names_) names.emplace(to[v], std::move(name));
  f.names_ = std::move(names);
}

}  // namespace forge::ir
