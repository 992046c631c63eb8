// SPDX-License-Identifier: Apache-2.0
// Building functions.
#include <algorithm>

#include "ir/graph/module.h"
#include "ir/op/attributes.h"
#include "ir/op/signature.h"

namespace forge::ir {
namespace {

// Equal up to dimensions that only binding can tell apart.
bool Fits(const Type& a, const Type& b) {
  if (a == b) return true;
  if (!a.is_tensor() || !b.is_tensor()) return false;
  if (a.dtype() != b.dtype() || !MayEqual(a.shape(), b.shape())) return false;
  return a.With(Dims()) == b.With(Dims());  // the encodings
}

bool IsIntegerTensor(const Type& t) {
  const bool tensor = t.is_tensor() || t.kind() == Type::Kind::kUnranked;
  return tensor && Has(kIntTypes, t.dtype());
}

template <class List>
bool HasName(const List& list, std::string_view name) {
  return std::any_of(list.begin(), list.end(), [&](const auto& x) { return x.name == name; });
}

}  // namespace

uint32_t Function::NewValue(Type type, Origin origin) {
  types_.push_back(std::move(type));
  origins_.push_back(origin);
  return static_cast<uint32_t>(types_.size() - 1);
}

// Here, that not every source that sees a function makes the code of its tables.
Function::Function(std::string name, Module* module) : name_(std::move(name)), module_(module) {}
Function::~Function() = default;

Value Function::Argument(std::string name, Type type) {
  if (name.empty() || HasName(arguments_, name))
    Fail(InvalidArgument("the argument name '{}' is empty or used twice", name));
  const auto index = static_cast<uint32_t>(arguments_.size());
  const uint32_t id = NewValue(std::move(type), {Origin::kArgument, index});
  arguments_.push_back({std::move(name), id});
  return value(id);
}

// Operands as node.in has them, as many as the signature names.
std::vector<uint32_t> Function::Ids(const AnyOp& op, ValueSpan in) const {
  std::vector<uint32_t> ids;
  ids.reserve(in.size());
  for (const Value& v : in) {
    FORGE_CHECK(!v || (v.fn == this && v.id < value_count()));
    ids.push_back(v ? v.id : kAbsent);
  }
  const auto& inputs = SignatureOf(op.def()).inputs;
  const size_t fixed = inputs.size() - (!inputs.empty() && inputs.back().variadic);
  if (ids.size() < fixed) ids.resize(fixed, kAbsent);
  return ids;
}

Values Function::Append(Node node, Types types) {
  node.first_out = value_count();
  node.outs = static_cast<uint16_t>(types.size());
  node.from = scope_;
  Values out;
  const auto index = static_cast<uint32_t>(nodes_.size());
  for (Type& t : types) out.push_back(value(NewValue(std::move(t), {Origin::kNode, index})));
  nodes_.push_back(std::move(node));
  return out;
}

Values Function::Absent(const AnyOp& op) {
  const auto& outputs = SignatureOf(op.def()).outputs;
  const size_t named = outputs.size() - (!outputs.empty() && outputs.back().variadic);
  Values out;
  for (size_t i = 0; i < std::max<size_t>(1, named); ++i)
    out.push_back(value(NewValue(Type(), {Origin::kNode, kAbsent})));
  return out;
}

Values Function::Add(const AnyOp& op, ValueSpan in) { return AddRuntimeValued(op, in, {}); }

Values Function::AddRuntimeValued(const AnyOp& op, ValueSpan in,
                                  std::span<const RuntimeField> runtime) {
  if (!status_.ok()) return Absent(op);
  Node node{.op = op, .in = Ids(op, in), .runtime_attributes = {}, .from = nullptr};
  const Types operands = TypesOf(node.in);
  for (const RuntimeField& l : runtime) {
    const Field* field = FindField(op.def().fields, l.field);
    FORGE_CHECK(field != nullptr && l.value.fn == this);
    if (!IsIntegerTensor(l.value.type()))
      Fail(InvalidArgument("{}: {} takes integers, not {}", op.name(), l.field,
                           l.value.type().ToText()));
    const auto index = static_cast<uint16_t>(field - op.def().fields.data());
    node.runtime_attributes.push_back({index, l.value.id});
  }
  auto types = runtime.empty() ? op.Infer(operands) : op.InferRuntimeValued(operands);
  if (!types.ok()) Fail(types.status());
  if (types.ok() && types->size() > UINT16_MAX)
    Fail(ResourceExhausted("{}: more than 65535 results", op.name()));
  if (!status_.ok()) return Absent(op);
  return Append(std::move(node), *std::move(types));
}

const Type& Value::type() const {
  static const Type kNone;
  return fn != nullptr ? fn->type(id) : kNone;
}

std::string_view NameOf(const Function& f) { return f.name(); }

Value Function::Read(Variable* v) {
  FORGE_CHECK(v != nullptr);
  return ReadAs(v, v->type);
}

Value Function::ReadAs(Variable* v, Type type) {
  const auto [at, added] = read_of_.try_emplace(v, value_count());
  if (added) {
    NewValue(std::move(type), {Origin::kVariable, static_cast<uint32_t>(reads_.size())});
    reads_.push_back({v, at->second});
  }
  return value(at->second);
}

void Function::Store(Variable* v, Value value) {
  if (!status_.ok()) return;
  FORGE_CHECK(v != nullptr && value.fn == this);
  if (!Fits(v->type, value.type()))
    return Fail(InvalidArgument("variable {} is {} and cannot store {}", v->name, v->type.ToText(),
                                value.type().ToText()));
  for (const Update& u : updates_)
    if (u.variable == v) return Fail(InvalidArgument("variable {} is stored twice", v->name));
  updates_.push_back({v, value.id});
}

void Function::Return(std::string name, Value value) {
  if (!status_.ok()) return;
  FORGE_CHECK(value.fn == this);
  if (name.empty() || HasName(results_, name))
    return Fail(InvalidArgument("the result name '{}' is empty or used twice", name));
  results_.push_back({std::move(name), value.id});
}

void Function::Fail(absl::Status s) {
  if (s.ok() || !status_.ok()) return;
  status_ = scope_ != nullptr ? Annotate(s, scope_->ToText()) : std::move(s);
}

void Function::SetEncoding(Value v, EncodingRef encoding) {
  types_[v.id] = types_[v.id].With(std::move(encoding));
}

void Function::SetName(Value v, std::string_view name) {
  FORGE_CHECK(v.fn == this);
  if (!name.empty() && NameOf(v.id).empty()) names_.emplace(v.id, name);
}

std::string_view Function::NameOf(uint32_t value) const {
  if (const auto at = names_.find(value); at != names_.end()) return at->second;
  const Origin& o = origins_[value];
  if (o.kind == Origin::kArgument) return arguments_[o.index].name;
  return o.kind == Origin::kVariable ? std::string_view(reads_[o.index].variable->name)
                                     : std::string_view();
}

Variable* Function::VariableOf(uint32_t value) const {
  const Origin& o = origins_[value];
  return o.kind == Origin::kVariable ? reads_[o.index].variable : nullptr;
}

Types Function::TypesOf(std::span<const uint32_t> values) const {
  Types out;
  out.reserve(values.size());
  for (uint32_t v : values) out.push_back(v != kAbsent ? types_[v] : Type());
  return out;
}

void Function::Reorder(std::span<const uint32_t> order) {
  std::vector<uint32_t> to(value_count());
  uint32_t next = 0;
  for (uint32_t v = 0; v < value_count(); ++v)
    if (origins_[v].kind != Origin::kNode) to[v] = next++;
  const auto move = [&](uint32_t& v) { v = v == kAbsent ? kAbsent : to[v]; };
  std::deque<Node> nodes;
  for (uint32_t n : order) {
    Node& node = nodes.emplace_back(std::move(nodes_[n]));
    for (uint32_t k = 0; k < node.outs; ++k) {
      to[node.first_out + k] = next + k;
      origins_[node.first_out + k].index = static_cast<uint32_t>(nodes.size() - 1);
    }
    node.first_out = next;
    next += node.outs;
    for (uint32_t& v : node.in) move(v);
    for (RuntimeAttribute& l : node.runtime_attributes) move(l.value);
  }
  std::deque<Type> types(types_.size());
  std::vector<Origin> origins(origins_.size());
  for (uint32_t v = 0; v < to.size(); ++v) {
    types[to[v]] = std::move(types_[v]);
    origins[to[v]] = origins_[v];
  }
  types_ = std::move(types);
  origins_ = std::move(origins);
  nodes_ = std::move(nodes);
  for (auto& a : arguments_) move(a.value);
  for (auto& r : reads_) read_of_[r.variable] = r.value = to[r.value];
  for (auto& r : results_) move(r.value);
  for (auto& u : updates_) move(u.value);
  absl::node_hash_map<uint32_t, std::string> names;
  for (auto& [v, name] : names_) names.emplace(to[v], std::move(name));
  names_ = std::move(names);
}

std::vector<int> Function::UseCounts() const {
  std::vector<int> uses(types_.size());
  for (const Node& n : nodes_) {
    for (uint32_t v : n.in)
      if (v != kAbsent) ++uses[v];
    for (const RuntimeAttribute& l : n.runtime_attributes) ++uses[l.value];
  }
  for (const Result& r : results_) ++uses[r.value];
  for (const Update& u : updates_) ++uses[u.value];
  return uses;
}

}  // namespace forge::ir
