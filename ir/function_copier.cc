// SPDX-License-Identifier: Apache-2.0
#include "ir/function_copier.h"

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

}  // namespace forge::ir
