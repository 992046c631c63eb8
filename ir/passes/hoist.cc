// SPDX-License-Identifier: Apache-2.0
#include "ir/passes/copier.h"
#include "ir/passes/passes.h"

namespace forge::ir {
namespace {

bool IsConstant(const Function& f, uint32_t value) {
  const Variable* v = f.VariableOf(value);
  return v != nullptr && v->role == Variable::Role::kConstant;
}

// For each value, whether it depends on constants alone and is worth computing once. A node without
// operands is a literal: it costs nothing where it is used.
std::vector<bool> StaticValues(const Function& f) {
  std::vector<bool> is_static(f.value_count(), false);
  for (const auto& read : f.reads()) is_static[read.value] = IsConstant(f, read.value);
  std::vector<bool> literal(f.value_count(), false);
  for (const Node& node : f.nodes()) {
    bool all = true, any = false;
    for (uint32_t v : node.in) {
      if (v == kAbsent) continue;
      any |= is_static[v];
      all &= is_static[v] || literal[v];
    }
    for (uint16_t i = 0; i < node.outs; ++i) {
      is_static[node.first_out + i] = all && any && node.late.empty();
      literal[node.first_out + i] = node.in.empty() && node.late.empty();
    }
  }
  return is_static;
}

// Copies static nodes, and the literals they read, into `load`.
class Loader {
 public:
  Loader(const Function& in, Function& load) : in_(in), load_(load), map_(in.value_count()) {}

  Value Copy(uint32_t value) {
    if (map_[value]) return map_[value];
    if (Variable* v = in_.VariableOf(value)) return map_[value] = load_.Read(v);
    const Node& node = in_.nodes()[in_.origin(value).index];
    Values operands;
    for (uint32_t v : node.in)
      operands.push_back(v == kAbsent ? Value{} : map_[v] ? map_[v] : Copy(v));
    Function::Scope scope(load_, node.from);
    Values made = load_.Add(node.op, operands);
    for (uint32_t i = 0; i < made.size(); ++i) {
      KeepEncoding(in_, node.first_out + i, load_, made[i]);
      map_[node.first_out + i] = made[i];
    }
    return map_[value];
  }

 private:
  const Function& in_;
  Function& load_;
  std::vector<Value> map_;
};

std::string NameFor(const Function& f, uint32_t value) {
  std::string_view name = f.NameOf(value);
  return name.empty() ? fmt::format("hoisted.{}", value) : std::string(name);
}

}  // namespace

absl::StatusOr<int> Hoist(Module& m, const Function& in, Function& load, Function& out) {
  const std::vector<bool> is_static = StaticValues(in);
  Loader loader(in, load);
  std::vector<Variable*> made(in.value_count(), nullptr);
  int moved = 0;
  auto cross = [&](uint32_t v) {
    if (v == kAbsent || !is_static[v] || in.VariableOf(v) || made[v]) return;
    Variable computed;
    computed.name = NameFor(in, v);
    computed.type = in.type(v);
    made[v] = m.AddVariable(std::move(computed));
    load.Return(made[v]->name, loader.Copy(v));
  };
  for (const Node& node : in.nodes()) {
    if (is_static[node.first_out]) {
      ++moved;
      continue;
    }
    for (uint32_t v : node.in) cross(v);
  }
  for (const auto& result : in.results()) cross(result.value);
  for (const auto& update : in.updates()) cross(update.value);

  Copier copy(in, out);
  for (const Node& node : in.nodes()) {
    if (!is_static[node.first_out]) {
      copy.CopyNode(node);
      continue;
    }
    for (uint16_t k = 0; k < node.outs; ++k)
      if (Variable* v = made[node.first_out + k]) copy.Map(node.first_out + k, out.Read(v));
  }
  FORGE_RETURN_IF_ERROR(copy.Finish());
  FORGE_RETURN_IF_ERROR(load.status());
  return moved;
}

}  // namespace forge::ir
