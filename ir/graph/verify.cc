// SPDX-License-Identifier: Apache-2.0
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/graph/module.h"
#include "ir/op/attributes.h"
#include "ir/type/host_value.h"

namespace forge::ir {
namespace {

// What belongs to the module or to its base.
struct Owned {
  explicit Owned(const Module& m) {
    for (const Module* at = &m; at != nullptr; at = at->base()) {
      for (const auto& f : at->functions()) functions.insert(f.get());
      for (const auto& v : at->variables()) variables.insert(v.get());
      for (const auto& s : at->symbols()) symbols.insert(s.get());
    }
  }
  absl::flat_hash_set<const Function*> functions;
  absl::flat_hash_set<const Variable*> variables;
  absl::flat_hash_set<const Symbol*> symbols;
};

absl::Status CheckDims(std::span<const Dim> dims, const Owned& owned) {
  std::vector<SymbolRef> symbols;
  for (const Dim& d : dims) d.CollectSymbols(symbols);
  for (const SymbolRef& s : symbols)
    if (!owned.symbols.contains(s.get()))
      return Internal("the symbol {} is not of this module", s->name);
  return absl::OkStatus();
}

absl::Status CheckType(const Type& t, const Owned& owned) {
  switch (t.kind()) {
    case Type::Kind::kAbsent:
      return Internal("the type is absent");
    case Type::Kind::kUnranked:
    case Type::Kind::kUnknown:
      return absl::OkStatus();
    case Type::Kind::kSequence:
    case Type::Kind::kOptional:
      return CheckType(t.element(), owned);
    case Type::Kind::kTensor:
      break;
  }
  for (const Dim& d : t.shape())
    if (d.max() < 0) return Internal("the dimension {} is negative", d.ToText());
  return CheckDims(t.shape(), owned);
}

absl::Status CheckStorage(const Variable& v) {
  const Type& whole = v.init->whole;
  if (!whole.is_constant()) return Internal("its storage has the type {}", whole.ToText());
  if (whole.dtype() == DType::kString)
    return HostValue::Of(whole.dtype(), Constants(whole.shape()), v.init->bytes).status();
  const auto bytes = whole.bytes();
  if (!bytes.ok()) return Internal("{}", Message(bytes.status()));
  if (!bytes->is_constant() || static_cast<uint64_t>(bytes->constant()) != v.init->bytes.size())
    return Internal("its storage is {}, {} bytes, and holds {}", whole.ToText(), bytes->ToText(),
                    v.init->bytes.size());
  const auto& begin = v.init->begin;
  if (begin.empty()) {
    if (v.type != whole)
      return Internal("it is {}, its storage {}", v.type.ToText(), whole.ToText());
    return absl::OkStatus();
  }
  if (!v.type.is_constant() || v.type.rank() != whole.rank() ||
      begin.size() != whole.shape().size() || v.type.dtype() != whole.dtype())
    return Internal("its box does not fit into {}", whole.ToText());
  for (size_t i = 0; i < begin.size(); ++i) {
    const int64_t extent = v.type.shape()[i].constant(), all = whole.shape()[i].constant();
    if (begin[i] < 0 || extent < 0 || begin[i] > all || extent > all - begin[i])
      return Internal("its box does not fit into {}", whole.ToText());
  }
  return absl::OkStatus();
}

absl::Status CheckVariable(const Variable& v, const Owned& owned) {
  FORGE_RETURN_IF_ERROR(CheckType(v.type, owned));
  return v.init ? CheckStorage(v) : absl::OkStatus();
}

absl::Status CheckSymbol(const Symbol& s) {
  if (s.name.empty()) return Internal("a symbol has no name");
  if (s.min > s.max) return Internal("the symbol {} has no values", s.name);
  return absl::OkStatus();
}

class FunctionVerifier {
 public:
  FunctionVerifier(const Function& f, const Owned& owned) : f_(f), owned_(owned) {}

  absl::Status Run() {
    FORGE_RETURN_IF_ERROR(f_.status());
    defined_.resize(f_.value_count());
    FORGE_RETURN_IF_ERROR(CheckInputs());
    for (size_t i = 0; i < f_.nodes().size(); ++i) {
      const Node& n = f_.nodes()[i];
      if (absl::Status s = CheckNode(n, i); !s.ok())
        return Annotate(s, fmt::format("node {} {}{}", i, n.op.name(), Source(n)));
    }
    return CheckResults();
  }

 private:
  static std::string Source(const Node& n) {
    return n.from != nullptr ? fmt::format(" from {}", n.from->ToText()) : std::string();
  }

  absl::Status Define(uint32_t value, Function::Origin::Kind kind, size_t index) {
    if (value >= f_.value_count() || defined_[value])
      return Internal("value {} is defined twice or not known", value);
    defined_[value] = true;
    const Function::Origin& o = f_.origin(value);
    if (o.kind != kind || o.index != index) return Internal("value {} has another origin", value);
    return CheckType(f_.type(value), owned_);
  }

  absl::Status CheckInputs() {
    absl::flat_hash_set<std::string_view> names;
    for (size_t i = 0; i < f_.arguments().size(); ++i) {
      const auto& a = f_.arguments()[i];
      if (a.name.empty() || !names.insert(a.name).second)
        return Internal("the argument name '{}' is empty or used twice", a.name);
      FORGE_RETURN_IF_ERROR(Define(a.value, Function::Origin::kArgument, i));
    }
    for (size_t i = 0; i < f_.reads().size(); ++i) {
      const auto& r = f_.reads()[i];
      FORGE_RETURN_IF_ERROR(CheckOwned(r.variable));
      FORGE_RETURN_IF_ERROR(Define(r.value, Function::Origin::kVariable, i));
      if (f_.type(r.value).kind() != r.variable->type.kind() ||
          f_.type(r.value).dtype() != r.variable->type.dtype())
        return Internal("variable {} is {} and is read as {}", r.variable->name,
                        r.variable->type.ToText(), f_.type(r.value).ToText());
    }
    return absl::OkStatus();
  }

  absl::Status CheckOwned(const Variable* v) const {
    if (owned_.variables.contains(v)) return absl::OkStatus();
    return Internal("a variable is not of this module");
  }

  absl::Status CheckUse(uint32_t value) const {
    if (value < f_.value_count() && defined_[value]) return absl::OkStatus();
    return Internal("value {} is used before it is made", value);
  }

  absl::Status CheckNode(const Node& n, size_t index) {
    for (uint32_t v : n.in)
      if (v != kAbsent) FORGE_RETURN_IF_ERROR(CheckUse(v));
    for (const RuntimeAttribute& l : n.runtime_attributes) {
      if (l.field >= n.op.def().fields.size())
        return Internal("runtime-valued attribute {} does not exist", l.field);
      FORGE_RETURN_IF_ERROR(CheckUse(l.value));
    }
    FORGE_RETURN_IF_ERROR(CheckAttributes(n.op));
    const Types operands = f_.TypesOf(n.in);
    auto types =
        n.runtime_attributes.empty() ? n.op.Infer(operands) : n.op.InferRuntimeValued(operands);
    if (!types.ok()) return Internal("{}", Message(types.status()));
    if (types->size() != n.outs)
      return Internal("has {} results instead of {}", n.outs, types->size());
    for (uint32_t i = 0; i < n.outs; ++i) {
      const uint32_t v = n.first_out + i;
      FORGE_RETURN_IF_ERROR(Define(v, Function::Origin::kNode, index));
      if (Fixed(n, f_.type(v)) != Fixed(n, (*types)[i]))
        return Internal("result {} is {} instead of {}", i, f_.type(v).ToText(),
                        (*types)[i].ToText());
    }
    return absl::OkStatus();
  }

  // The type without what a pass may choose.
  static Type Fixed(const Node& n, const Type& t) {
    return t.is_tensor() && !n.op.def().info.encodes ? t.With(EncodingRef()) : t;
  }

  absl::Status CheckAttributes(const AnyOp& op) const {
    for (const Field& f : op.def().fields) {
      const void* at = f.at_const(op.self());
      absl::Status s;
      if (f.kind == FieldKind::kDim)
        s = CheckDims({static_cast<const Dim*>(at), 1}, owned_);
      else if (f.kind == FieldKind::kDims)
        s = CheckDims(*static_cast<const Dims*>(at), owned_);
      else if (f.kind == FieldKind::kType && *static_cast<const Type*>(at))
        s = CheckType(*static_cast<const Type*>(at), owned_);
      if (!s.ok()) return Annotate(s, f.name);
    }
    for (const Function* body : BodiesOf(op))
      if (!owned_.functions.contains(body)) return Internal("a body is not of this module");
    return absl::OkStatus();
  }

  absl::Status CheckResults() const {
    absl::flat_hash_set<std::string_view> names;
    for (const auto& r : f_.results()) {
      if (r.name.empty() || !names.insert(r.name).second)
        return Internal("the result name '{}' is empty or used twice", r.name);
      FORGE_RETURN_IF_ERROR(CheckUse(r.value));
    }
    absl::flat_hash_set<const Variable*> stored;
    for (const auto& u : f_.updates()) {
      FORGE_RETURN_IF_ERROR(CheckOwned(u.variable));
      FORGE_RETURN_IF_ERROR(CheckUse(u.value));
      if (!stored.insert(u.variable).second)
        return Internal("variable {} is stored twice", u.variable->name);
      if (f_.type(u.value).dtype() != u.variable->type.dtype())
        return Internal("variable {} is {} and stores {}", u.variable->name,
                        u.variable->type.ToText(), f_.type(u.value).ToText());
    }
    return absl::OkStatus();
  }

  const Function& f_;
  const Owned& owned_;
  std::vector<bool> defined_;
};

// Refuses functions that reach themselves, by repeatedly taking away those without bodies left.
absl::Status CheckAcyclic(const Module& m) {
  absl::flat_hash_map<const Function*, absl::flat_hash_set<const Function*>> users;
  absl::flat_hash_map<const Function*, size_t> open;
  absl::flat_hash_set<const Function*> own;
  for (const auto& f : m.functions()) own.insert(f.get());
  for (const auto& f : m.functions())
    for (const Node& n : f->nodes())
      for (const Function* body : BodiesOf(n.op))
        if (own.contains(body) && users[body].insert(f.get()).second) ++open[f.get()];
  std::vector<const Function*> ready;
  for (const auto& f : m.functions())
    if (open[f.get()] == 0) ready.push_back(f.get());
  size_t done = 0;
  for (; done < ready.size(); ++done)
    for (const Function* user : users[ready[done]])
      if (--open[user] == 0) ready.push_back(user);
  if (done == m.functions().size()) return absl::OkStatus();
  for (const auto& f : m.functions())
    if (open[f.get()] != 0) return Internal("function {}: its bodies form a cycle", f->name());
  return absl::OkStatus();
}

template <class List>
absl::Status CheckNames(const List& list, std::string_view what) {
  absl::flat_hash_set<std::string_view> names;
  for (const auto& x : list) {
    std::string_view name;
    if constexpr (requires { x->name(); })
      name = x->name();
    else
      name = x->name;
    if (name.empty() || !names.insert(name).second)
      return Internal("the {} name '{}' is empty or used twice", what, name);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Verify(const Module& m) {
  FORGE_RETURN_IF_ERROR(CheckNames(m.functions(), "function"));
  FORGE_RETURN_IF_ERROR(CheckNames(m.variables(), "variable"));
  FORGE_RETURN_IF_ERROR(CheckNames(m.symbols(), "symbol"));
  const Owned owned(m);
  for (const auto& s : m.symbols()) FORGE_RETURN_IF_ERROR(CheckSymbol(*s));
  for (const auto& v : m.variables())
    if (absl::Status s = CheckVariable(*v, owned); !s.ok())
      return Annotate(s, fmt::format("variable {}", v->name));
  FORGE_RETURN_IF_ERROR(CheckAcyclic(m));
  for (const auto& f : m.functions())
    if (absl::Status s = FunctionVerifier(*f, owned).Run(); !s.ok())
      return Annotate(s, fmt::format("function {}", f->name()));
  return absl::OkStatus();
}

absl::Status Verify(const Function& f) {
  static const Module kNone;
  const Owned owned(f.module() != nullptr ? *f.module() : kNone);
  return Annotate(FunctionVerifier(f, owned).Run(), fmt::format("function {}", f.name()));
}

}  // namespace forge::ir
