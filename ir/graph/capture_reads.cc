// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/capture_reads.h"

#include <algorithm>

#include "ir/graph/copier.h"

namespace forge::ir {
namespace {

void AddReads(const Function& f, std::vector<Variable*>& to) {
  for (const Function::VariableRead& read : f.reads())
    if (read.variable->role != Variable::Role::kConstant &&
        std::ranges::find(to, read.variable) == to.end())
      to.push_back(read.variable);
}

using Captured = absl::flat_hash_map<const Variable*, Value>;
absl::Status CopyCapturing(const Function& in, Copier& copy, const Captured& captured,
                           Function& out);

// A body that takes `variables` after its other captures.
absl::StatusOr<Function*> Capturing(const Function& body, std::span<Variable* const> variables,
                                    Module& m) {
  Function& out = *m.AddFunction(body.name());
  Copier copy(body, out);
  copy.CopyArguments();
  Captured captured;
  for (Variable* v : variables) captured[v] = out.Argument("variable " + v->name, v->type);
  for (const Function::VariableRead& read : body.reads())
    if (const auto at = captured.find(read.variable); at != captured.end())
      copy.Set(read.value, at->second);
  FORGE_RETURN_IF_ERROR(CopyCapturing(body, copy, captured, out));
  return &out;
}

absl::Status CopyCapturing(const Function& in, Copier& copy, const Captured& captured,
                           Function& out) {
  for (const Node& node : in.nodes()) {
    const std::vector<Variable*> variables = ReadInBodies(node);
    if (variables.empty()) {
      copy.CopyNode(node);
      continue;
    }
    absl::flat_hash_map<const Function*, Function*> bodies;
    for (const Function* body : BodiesOf(node.op)) {
      FORGE_ASSIGN_OR_RETURN(bodies[body], Capturing(*body, variables, *out.module()));
    }
    Values operands = copy.OperandsOf(node);
    for (Variable* v : variables) {
      const auto at = captured.find(v);
      operands.push_back(at != captured.end() ? at->second : out.Read(v));
    }
    const Function::Scope scope(out, node.from);
    const Values made = out.Add(WithBodies(node.op, bodies), operands);
    for (uint16_t k = 0; k < node.outs && out.status().ok(); ++k)
      copy.Map(node.first_out + k, made[k]);
  }
  return copy.Finish();
}

}  // namespace

std::vector<Variable*> ReadInBodies(const Node& node) {
  std::vector<Variable*> out;
  for (const Function* body : BodiesOf(node.op)) {
    AddReads(*body, out);
    for (const Function* nested : BodiesUnder(*body)) AddReads(*nested, out);
  }
  return out;
}

absl::Status CaptureReads(Module& m, const std::string& function) {
  const Function& in = *m.Find(function);
  const auto reads = [](const Node& node) { return !ReadInBodies(node).empty(); };
  if (std::ranges::none_of(in.nodes(), reads)) return absl::OkStatus();
  auto out = std::make_unique<Function>(function, &m);
  Copier copy(in, *out);
  copy.CopyArguments();
  FORGE_RETURN_IF_ERROR(CopyCapturing(in, copy, {}, *out));
  m.Replace(function, std::move(out));
  return absl::OkStatus();
}

}  // namespace forge::ir
