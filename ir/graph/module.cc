// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/module.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "ir/graph/copier.h"

namespace forge::ir {
namespace {

// A name that `taken` does not hold: `name` itself, or with ".1", ".2" ...
template <class Map>
std::string UniqueName(const Map& taken, std::string name) {
  if (!taken.contains(name)) return name;
  for (uint64_t i = 1;; ++i)
    if (std::string next = fmt::format("{}.{}", name, i); !taken.contains(next)) return next;
}

template <class Map>
auto FindIn(const Map& map, std::string_view name) -> typename Map::mapped_type {
  const auto at = map.find(absl::string_view(name.data(), name.size()));
  return at != map.end() ? at->second : nullptr;
}

// The source nodes at the bottom of a provenance, each once.
class Leaves {
 public:
  void Collect(const ProvenanceRef& p, std::vector<ProvenanceRef>& out) {
    if (p == nullptr || !seen_.insert(p.get()).second) return;
    const bool leaf = p->parts.empty() && !p->node.empty();
    if (leaf && nodes_.emplace(p->node, p->kind).second) out.push_back(p);
    for (const ProvenanceRef& part : p->parts) Collect(part, out);
  }

 private:
  absl::flat_hash_set<const Provenance*> seen_;
  absl::flat_hash_set<std::pair<std::string_view, std::string_view>> nodes_;
};

std::string LeafText(const Provenance& p) {
  return p.kind.empty() ? p.node : fmt::format("{} ({})", p.node, p.kind);
}

}  // namespace

ProvenanceRef MadeBy(std::string_view pass, std::span<const ProvenanceRef> parts) {
  auto out = std::make_shared<Provenance>();
  out->pass = pass;
  Leaves leaves;
  for (const ProvenanceRef& p : parts) leaves.Collect(p, out->parts);
  return out;
}

std::string Provenance::ToText() const {
  constexpr size_t kMost = 6;
  if (parts.empty()) return node.empty() ? pass : LeafText(*this);
  if (parts.size() == 1) return parts[0]->ToText();
  // Nodes of one name, such as those of a module that called several operators, are named once.
  std::vector<std::string> names;
  for (const ProvenanceRef& p : parts) {
    std::string name = p->parts.empty() ? p->node : p->ToText();
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  }
  const size_t more = names.size() - std::min(names.size(), kMost);
  names.resize(names.size() - more);
  const std::string out = fmt::format("{}", fmt::join(names, " + "));
  return more > 0 ? fmt::format("{} + {} more", out, more) : out;
}

bool HasEffects(const Node& node) { return node.op.def().info.ordered || node.outs == 0; }

Module::Module(const Module* base) : base_(base) {}
Module::~Module() = default;

Function* Module::AddFunction(std::string name) {
  functions_.push_back(std::make_unique<Function>(UniqueName(function_of_, std::move(name)), this));
  Function* f = functions_.back().get();
  function_of_[f->name()] = f;
  return f;
}

Function* Module::Find(std::string_view name) const { return FindIn(function_of_, name); }

Function* Module::Replace(std::string_view name, std::unique_ptr<Function> f) {
  FORGE_CHECK(f != nullptr);
  Function* before = Find(name);
  FORGE_CHECK(before != nullptr && (f->name() == name || Find(f->name()) == nullptr));
  f->module_ = this;
  const Function::Bodies bodies{{before, f.get()}};
  f->MapBodies(bodies);
  for (auto& other : functions_)
    if (other.get() != before) other->MapBodies(bodies);
  function_of_.erase(before->name());
  function_of_[f->name()] = f.get();
  auto at = std::find_if(functions_.begin(), functions_.end(),
                         [&](const auto& owned) { return owned.get() == before; });
  *at = std::move(f);
  return at->get();
}

Variable* Module::AddVariable(Variable v) {
  v.name = UniqueName(variable_of_, std::move(v.name));
  variables_.push_back(std::make_unique<Variable>(std::move(v)));
  Variable* added = variables_.back().get();
  variable_of_[added->name] = added;
  return added;
}

Variable* Module::ShareVariable(Variable v) {
  Variable* const same = FindVariable(v.name);
  const bool is_same = same != nullptr && same->role == v.role && same->type == v.type &&
                       same->init && v.init && same->init->bytes.data() == v.init->bytes.data();
  return is_same ? same : AddVariable(std::move(v));
}

Variable* Module::FindVariable(std::string_view name) const { return FindIn(variable_of_, name); }

SymbolRef Module::FindSymbol(std::string_view name) const { return FindIn(symbol_of_, name); }

SymbolRef Module::SymbolNamed(std::string_view name) {
  if (SymbolRef known = FindSymbol(name)) return known;
  auto made = std::make_shared<Symbol>();
  made->name = name;
  AddSymbol(made);
  return made;
}

void Module::AddSymbol(SymbolRef s) {
  FORGE_CHECK(s != nullptr);
  const auto [at, added] = symbol_of_.try_emplace(s->name, s);
  FORGE_CHECK(at->second == s);
  if (added) symbols_.push_back(std::move(s));
}

std::string_view Module::Metadata(std::string_view key) const {
  for (const auto& [k, v] : metadata)
    if (k == key) return v;
  return {};
}

namespace {

using Functions = std::vector<const Function*>;

std::unique_ptr<Module> CloneOf(const Module& m, const Functions& functions) {
  auto out = std::make_unique<Module>(m.base());
  out->metadata = m.metadata;
  for (const SymbolRef& s : m.symbols()) out->AddSymbol(s);
  Substitutes with;
  for (const auto& v : m.variables()) with.variables[v.get()] = out->AddVariable(*v);
  for (const Function* f : functions) with.bodies[f] = out->AddFunction(f->name());
  // A function that failed stays so: its status() goes along.
  for (const Function* f : functions) Copier(*f, *with.bodies.at(f), with).CopyAll().IgnoreError();
  return out;
}

}  // namespace

std::unique_ptr<Module> Clone(const Module& m) {
  Functions all;
  for (const auto& f : m.functions()) all.push_back(f.get());
  return CloneOf(m, all);
}

std::unique_ptr<Module> CloneWithBodies(const Module& m, const Function& root) {
  Functions functions = BodiesUnder(root);
  functions.push_back(&root);
  return CloneOf(m, functions);
}

}  // namespace forge::ir
