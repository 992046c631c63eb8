// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/graph/copier.h"
#include "ir/passes/passes.h"

namespace forge::ir {
namespace {

bool IsConstant(const Function& f, uint32_t value) {
  const Variable* v = f.VariableOf(value);
  return v != nullptr && v->role == Variable::Role::kConstant;
}

bool IsBound(const Type& t) { return !t.is_tensor() || t.is_constant(); }

bool IsBound(const AnyOp& op);

bool IsBound(const Field& field, const void* at) {
  switch (field.kind) {
    case FieldKind::kDim:
      return static_cast<const Dim*>(at)->is_constant();
    case FieldKind::kDims:
      return AllConstant(*static_cast<const Dims*>(at));
    case FieldKind::kType:
      return IsBound(*static_cast<const Type*>(at));
    case FieldKind::kFunction: {
      const Function* body = *static_cast<Function* const*>(at);
      for (uint32_t v = 0; body && v < body->value_count(); ++v)
        if (!IsBound(body->type(v))) return false;
      return body == nullptr || std::all_of(body->nodes().begin(), body->nodes().end(),
                                            [](const Node& n) { return IsBound(n.op); });
    }
    default:
      return true;
  }
}

// Whether nothing of the op waits for numbers: `load` runs before a binding.
bool IsBound(const AnyOp& op) {
  return std::all_of(op.def().fields.begin(), op.def().fields.end(),
                     [&](const Field& f) { return IsBound(f, f.at_const(op.self())); });
}

// For each value, whether it depends on constants alone and is worth computing once. A node without
// operands is a literal: it costs nothing where it is used. Effects stay where they are.
std::vector<bool> StaticValues(const Function& f) {
  std::vector<bool> is_static(f.value_count(), false);
  for (const auto& read : f.reads())
    is_static[read.value] = IsConstant(f, read.value) && IsBound(f.type(read.value));
  std::vector<bool> literal(f.value_count(), false);
  for (const Node& node : f.nodes()) {
    bool all = node.runtime_attributes.empty() && IsBound(node.op) && !HasEffects(node),
         any = false;
    for (uint32_t v : node.in) {
      if (v == kAbsent) continue;
      any |= is_static[v];
      all &= is_static[v] || literal[v];
    }
    for (uint16_t i = 0; i < node.outs; ++i) all &= IsBound(f.type(node.first_out + i));
    for (uint16_t i = 0; i < node.outs; ++i) {
      is_static[node.first_out + i] = all && any;
      literal[node.first_out + i] = all && node.in.empty();
    }
  }
  return is_static;
}

bool IsStatic(const std::vector<bool>& is_static, const Node& node) {
  return !HasEffects(node) && is_static[node.first_out];
}

// Copies what is needed of static nodes, and the literals they read, into `load`.
class Loader {
 public:
  Loader(const Function& in, Function& load)
      : in_(in), copy_(in, load), needed_(in.value_count()) {}

  void Need(uint32_t value) { needed_[value] = true; }

  void Copy() {
    for (size_t i = in_.nodes().size(); i-- > 0;) {
      const Node& node = in_.nodes()[i];
      if (!IsNeeded(node)) continue;
      for (uint32_t v : node.in)
        if (v != kAbsent) Need(v);
    }
    for (const auto& r : in_.reads())
      if (needed_[r.value]) copy_[r.value];
    for (const Node& node : in_.nodes())
      if (IsNeeded(node)) copy_.CopyNode(node);
  }

  Value operator[](uint32_t value) { return copy_[value]; }

 private:
  bool IsNeeded(const Node& node) const {
    for (uint32_t i = 0; i < node.outs; ++i)
      if (needed_[node.first_out + i]) return true;
    return false;
  }

  const Function& in_;
  Copier copy_;
  std::vector<bool> needed_;
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
  std::vector<uint32_t> crossing;
  int moved = 0;
  auto cross = [&](uint32_t v) {
    if (v == kAbsent || !is_static[v] || in.VariableOf(v) || made[v]) return;
    Variable computed;
    computed.name = NameFor(in, v);
    computed.type = in.type(v);
    made[v] = m.AddVariable(std::move(computed));
    loader.Need(v);
    crossing.push_back(v);
  };
  for (const Node& node : in.nodes()) {
    if (IsStatic(is_static, node)) {
      ++moved;
      continue;
    }
    for (uint32_t v : node.in) cross(v);
    for (const RuntimeAttribute& l : node.runtime_attributes) cross(l.value);
  }
  for (const auto& result : in.results()) cross(result.value);
  for (const auto& update : in.updates()) cross(update.value);
  loader.Copy();
  for (uint32_t v : crossing) load.Return(made[v]->name, loader[v]);

  Copier copy(in, out);
  copy.CopyArguments();
  for (const Node& node : in.nodes()) {
    if (!IsStatic(is_static, node)) {
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
