// SPDX-License-Identifier: Apache-2.0
#include "ir/analysis/dim_values.h"

#include "ir/graph/interpreter.h"
#include "ir/op/elements.h"
#include "ir/ops/elementwise/elementwise.h"

namespace forge::ir {
namespace {

constexpr int64_t kMaxKnownElements = 1024;

std::vector<int64_t> ExtentsOf(const Type& t) { return Constants(t.shape()); }

// Does `low <= value < high` hold? nullopt when not proven.
std::optional<bool> Holds(const IndexMap::Range& r) {
  if ((r.value - r.low).min() >= 0 && (r.high - r.value).min() > 0) return true;
  if ((r.value - r.low).max() < 0 || (r.high - r.value).max() <= 0) return false;
  return std::nullopt;
}

// The first piece of a map at one index; nullopt when it is not proven which. Past the end: none.
std::optional<size_t> PieceOf(const IndexMap& map) {
  for (size_t p = 0; p < map.pieces.size(); ++p) {
    bool all = true;
    for (const IndexMap::Range& r : map.pieces[p].when) {
      const std::optional<bool> holds = Holds(r);
      if (!holds) return std::nullopt;
      all = all && *holds;
    }
    if (all) return p;
  }
  return map.pieces.size();
}

// Row-major place of a constant index; nullopt when it is not constant or outside.
std::optional<size_t> PlaceOf(const Dims& index, std::span<const int64_t> shape) {
  int64_t flat = 0;
  for (size_t a = 0; a < index.size(); ++a) {
    if (!index[a].is_constant()) return std::nullopt;
    const int64_t at = index[a].constant();
    if (at < 0 || at >= shape[a]) return std::nullopt;
    flat = flat * shape[a] + at;
  }
  return static_cast<size_t>(flat);
}

std::optional<Dim> WholeNumber(const Number& v) {
  if (v.kind() != Number::Kind::kI64) return std::nullopt;
  return Dim(v.i64());
}

using KnownSpan = std::span<const std::optional<Dims>>;

std::optional<Dim> ElementOf(int operand, const Dims& index, TypeSpan in, KnownSpan known) {
  const size_t i = static_cast<size_t>(operand);
  if (!known[i]) return std::nullopt;
  const auto place = PlaceOf(index, ExtentsOf(in[i]));
  return place ? std::optional((*known[i])[*place]) : std::nullopt;
}

Dims Substituted(const Dims& index, const std::map<SymbolRef, Dim>& by) {
  Dims out;
  for (const Dim& d : index) out.push_back(d.Substitute(by));
  return out;
}

// Puts what its loads read into a map; false where it is not known.
bool ResolveLoads(IndexMap& map, TypeSpan in, KnownSpan known) {
  std::map<SymbolRef, Dim> by;
  for (const IndexMap::Load& l : map.loads) {
    std::optional<Dim> read = ElementOf(l.operand, Substituted(l.index, by), in, known);
    if (!read) return false;
    by.emplace(l.defines, *std::move(read));
  }
  if (by.empty()) return true;
  for (IndexMap::Piece& p : map.pieces) {
    p.index = Substituted(p.index, by);
    if (p.value) p.value = p.value->Substitute(by);
    for (IndexMap::Range& r : p.when)
      r = {r.value.Substitute(by), r.low.Substitute(by), r.high.Substitute(by)};
  }
  return true;
}

// The element at one index of a movement op's result.
std::optional<Dim> Moved(IndexMap map, TypeSpan in, KnownSpan known) {
  if (!ResolveLoads(map, in, known)) return std::nullopt;
  const std::optional<size_t> piece = PieceOf(map);
  if (!piece) return std::nullopt;
  if (*piece == map.pieces.size()) return WholeNumber(map.fill);
  const IndexMap::Piece& p = map.pieces[*piece];
  return p.value ? p.value : ElementOf(p.operand, p.index, in, known);
}

absl::StatusOr<HostValue> NumbersOf(const Type& t, const Dims& contents) {
  FORGE_ASSIGN_OR_RETURN(HostValue v, HostValue::Zeros(t.dtype(), ExtentsOf(t)));
  for (size_t i = 0; i < contents.size(); ++i)
    v.SetI64(static_cast<int64_t>(i), contents[i].constant());
  return v;
}

Dims DimsOf(const HostValue& v) {
  const std::vector<int64_t> numbers = Integers(v);
  return Dims(numbers.begin(), numbers.end());
}

}  // namespace

std::optional<Dims> DimValues::ContentsOf(uint32_t value) {
  if (value >= f_.value_count()) return std::nullopt;
  known_.resize(f_.value_count());
  for (; nodes_seen_ < f_.nodes().size(); ++nodes_seen_) {
    const Node& node = f_.nodes()[nodes_seen_];
    if (node.outs == 1 && node.runtime_attributes.empty() && Trackable(node.first_out))
      known_[node.first_out] = OfNode(node);
  }
  if (!known_[value] && Trackable(value)) known_[value] = OfVariable(value);
  return known_[value];
}

bool DimValues::Trackable(uint32_t value) const {
  const Type& t = f_.type(value);
  if (!t.is_tensor() || t.encoding() || !Has(kIntTypes, t.dtype()) || !t.is_constant())
    return false;
  const Dim n = t.elements();
  return n.is_constant() && n.constant() <= kMaxKnownElements;
}

DimValues::Known DimValues::OfVariable(uint32_t value) const {
  const Variable* v = f_.VariableOf(value);
  if (v == nullptr || v->role != Variable::Role::kConstant) return std::nullopt;
  const absl::StatusOr<HostValue> numbers = InitialValue(*v);
  return numbers.ok() ? Known(DimsOf(*numbers)) : std::nullopt;
}

DimValues::Known DimValues::OfNode(const Node& node) {
  const Types in = f_.TypesOf(node.in);
  std::vector<Known> known;
  for (uint32_t v : node.in) {
    if (v != kAbsent && !known_[v] && Trackable(v)) known_[v] = OfVariable(v);
    known.push_back(v == kAbsent ? std::nullopt : known_[v]);
  }
  const OpDef& def = node.op.def();
  Known out;
  if (def.contents)
    out = node.op.Contents(in, known);
  else if (def.scalar && def.scalar->on_dims)
    out = OfElementWise(node, in, known);
  else if (def.map)
    out = OfMovement(node, in, known);
  return out ? out : OfNumbers(node, in, known);
}

DimValues::Known DimValues::OfElementWise(const Node& node, TypeSpan in,
                                          const std::vector<Known>& known) const {
  const std::vector<int64_t> shape = ExtentsOf(f_.type(node.first_out));
  std::vector<Index> strides;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!known[i]) return std::nullopt;
    strides.push_back(BroadcastStrides(ExtentsOf(in[i]), shape));
  }
  Dims out;
  for (Box at(shape); at; at.Next()) {
    Dims x;
    for (size_t i = 0; i < in.size(); ++i) {
      int64_t from = 0;
      for (size_t a = 0; a < shape.size(); ++a) from += (*at)[a] * strides[i][a];
      x.push_back((*known[i])[static_cast<size_t>(from)]);
    }
    std::optional<Dim> y = node.op.def().scalar->on_dims(node.op.self(), x.data());
    if (!y) return std::nullopt;
    out.push_back(*std::move(y));
  }
  return out;
}

DimValues::Known DimValues::OfMovement(const Node& node, TypeSpan in,
                                       const std::vector<Known>& known) const {
  for (const Type& t : in)
    if (!t.is_constant()) return std::nullopt;
  Dims out;
  const std::vector<int64_t> shape = ExtentsOf(f_.type(node.first_out));
  for (Box at(shape); at; at.Next()) {
    const Dims index((*at).begin(), (*at).end());
    std::optional<Dim> y = Moved(node.op.Map(in, index), in, known);
    if (!y) return std::nullopt;
    out.push_back(*std::move(y));
  }
  return out;
}

DimValues::Known DimValues::OfNumbers(const Node& node, TypeSpan in,
                                      const std::vector<Known>& known) const {
  std::vector<HostValue> values(in.size());
  std::vector<const HostValue*> operands(in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    if (!in[i]) continue;
    if (!known[i] || !AllConstant(*known[i])) return std::nullopt;
    absl::StatusOr<HostValue> v = NumbersOf(in[i], *known[i]);
    if (!v.ok()) return std::nullopt;
    values[i] = *std::move(v);
    operands[i] = &values[i];
  }
  const auto out = Evaluate(node.op, operands);
  return out.ok() ? Known(DimsOf(out->front())) : std::nullopt;
}

}  // namespace forge::ir
