// SPDX-License-Identifier: Apache-2.0
#include "codegen/region/elements.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "codegen/region/element.h"
#include "codegen/region/index.h"
#include "codegen/region/storage.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/norm/layer_norm.h"

namespace forge::codegen {
namespace {

using ir::Dim;
using ir::Dims;
using ir::IndexMap;

constexpr ElementFunction kRows[] = {
#define FORGE_ROW(T, ...) \
  [](const void* self, const Element* x) { return ElementOf(static_cast<const ir::T*>(self), x); },
#include "ir/ops/elementwise/row_list.inc"
};

bool NeverHolds(const IndexMap::Range& w) {
  return w.value.max() < w.low.min() || w.value.min() >= w.high.max();
}

// Of how many rows which one an index of a norm's result lies in.
std::pair<Dim, Dim> RowOf(const ir::Node& norm, const Dims& shape, const Dims& index) {
  const int64_t axis = norm.op.As<ir::LayerNorm>()->axis;
  const int64_t outer = axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis;
  const Dims rows(shape.begin(), shape.begin() + outer);
  return {ir::Product(rows), Flatten(Dims(index.begin(), index.begin() + outer), rows)};
}

bool Inside(const Dim& d, const Dim& extent) {
  return d.min() >= 0 && (d.max() < extent.min() || (d - extent).max() < 0);
}

}  // namespace

struct Elements::State {
  using Axes = std::map<ir::SymbolRef, Dim>;
  struct Place {
    uint32_t value;
    Dims index;
    friend bool operator==(const Place&, const Place&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Place& p) {
      h = H::combine(std::move(h), p.value);
      for (const Dim& d : p.index) h = H::combine(std::move(h), d.Hash());
      return h;
    }
  };

  State(Builder& builder, const Region& r, Launch& launch)
      : b(builder), region(r), body(r.body()), storage(builder, launch, r) {}

  Val Index(const Dim& d) { return b.Index(d, at); }
  // Does it differ between the lanes of the call in progress?
  bool Varies(const auto& index) const { return lane != nullptr && DependsOn(index, lane); }
  Dim AtLane(const Dim& d, int i) const { return d.Substitute({{lane, Dim(i)}}); }
  Val EachLane(absl::FunctionRef<Val(int i)> f) {
    Vals parts;
    for (int i = 0; i < lanes; ++i) parts.push_back(f(i));
    return b.Pack(parts[0].type().Lanes(lanes), parts);
  }

  // Equal facts of a value give one symbol, so that equal indices have equal forms.
  Dim Coordinate(Val v, int64_t max, int64_t divisor) {
    if (max == 0) return 0;
    ir::SymbolRef& s = coordinates[{v.id, max, divisor}];
    if (s == nullptr) {
      s = NewCoordinate(fmt::format("c{}", at.size()), max, divisor);
      at.emplace_back(s, v);
    }
    return Dim(s);
  }

  ir::SymbolRef LaneSymbol(int n) {
    ir::SymbolRef& s = lane_symbols[static_cast<size_t>(n)];
    if (s == nullptr) s = NewCoordinate(fmt::format("lane{}", n), n - 1);
    return s;
  }

  void Begin(int n) {
    seen.clear();
    finished.clear();
    lanes = n;
    lane = n > 1 ? LaneSymbol(n) : nullptr;
  }

  // ---- reading ----------------------------------------------------------------------------------

  // What follows the anchor is found by its value: `index` says what was computed before.
  Element Eval(uint32_t value, const Dims& index) {
    if (auto it = finished.find(value); it != finished.end()) return it->second;
    const ir::Function::Origin& from = body.origin(value);
    if (from.kind == ir::Function::Origin::kArgument)
      return Load(static_cast<int>(from.index), body.type(value), index);
    FORGE_CHECK(from.kind == ir::Function::Origin::kNode);
    Place place{value, index};
    if (auto it = seen.find(place); it != seen.end()) return it->second;
    const ir::Node& node = body.nodes()[from.index];
    const Element e = &node == region.norm()            ? EvalNorm(node, index)
                      : node.op.def().scalar != nullptr ? EvalElementWise(node, index)
                                                        : EvalMovement(node, index);
    seen.emplace(std::move(place), e);
    return e;
  }

  Element EvalElementWise(const ir::Node& node, const Dims& index) {
    std::vector<Element> in;
    in.reserve(node.in.size());
    for (uint32_t v : node.in) in.push_back(Eval(v, BroadcastIndex(index, body.type(v).shape())));
    Element e = kRows[static_cast<size_t>(node.op.def().scalar->index)](node.op.self(), in.data());
    FORGE_CHECK(e.dtype == body.type(node.first_out).dtype());
    return e;
  }

  // (x - mean) / deviation * gamma + beta, of what the launch before has kept of the row.
  Element EvalNorm(const ir::Node& node, const Dims& index) {
    const ir::Type& type = body.type(node.first_out);
    const DType computed = ComputeType(type.dtype());
    const auto [count, row] = RowOf(node, type.shape(), index);
    const auto load = [&](const Dim& at) {
      return storage.Load(region.operand_count(), computed, Index(at));
    };
    const auto kept = [&](const Dim& at) {
      return Varies(at) ? EachLane([&](int i) { return load(AtLane(at, i)); }) : load(at);
    };
    const auto operand = [&](size_t k) {
      return Eval(node.in[k], BroadcastIndex(index, body.type(node.in[k]).shape())).v;
    };
    Val y = (operand(0) - kept(row)) * kept(count + row);
    if (node.in.size() > 1 && node.in[1] != ir::kAbsent) y = y * operand(1);
    if (node.in.size() > 2 && node.in[2] != ir::kAbsent) y = y + operand(2);
    return {y, type.dtype()};
  }

  // Lanes go different ways: one by one.
  void ForEachLane(absl::FunctionRef<void(int i, const Axes& at)> emit) {
    const ir::SymbolRef symbol = std::exchange(lane, nullptr);
    const int n = std::exchange(lanes, 1);
    for (int i = 0; i < n; ++i) emit(i, {{symbol, Dim(i)}});
    lane = symbol, lanes = n;
  }
  Element EvalEachLane(uint32_t value, const Dims& index) {
    Vals parts;
    ForEachLane(
        [&](int, const Axes& at) { parts.push_back(Eval(value, Substitute(index, at)).v); });
    return {b.Pack(parts[0].type().Lanes(lanes), parts), body.type(value).dtype()};
  }

  bool Certain(const IndexMap::Range& w) {
    if (AlwaysHolds(w)) return true;
    const auto same = [&](const IndexMap::Range& t) {
      return t.value == w.value && t.low == w.low && t.high == w.high;
    };
    if (std::none_of(tests.begin(), tests.end(), same)) tests.push_back(w);
    return false;
  }

  // The part of a condition that is left to the run; null when it always holds, nullopt when never
  // or when it differs between lanes and `split` is set.
  std::optional<Val> Condition(const IndexMap::Piece& piece, bool& split) {
    Val all;
    for (IndexMap::Range w : piece.when) {
      if (Certain(w)) continue;
      if (NeverHolds(w)) return std::nullopt;
      if (Varies(w.value)) {
        // A block of aligned lanes lies on one side of an aligned bound.
        std::optional<Dim> base = AlignedBase(w.value, lane, lanes);
        if (!base || w.low.divisor() % lanes != 0 || w.high.divisor() % lanes != 0) {
          split = true;
          return std::nullopt;
        }
        w.value = *base;
      }
      const Val v = Index(w.value);
      const auto require = [&](Val c) { all = all ? all & c : c; };
      if (w.value.min() < w.low.max()) require(v >= Index(w.low));
      if (w.value.max() >= w.high.min()) require(v < Index(w.high));
    }
    return all;
  }

  // The element of one piece; where its condition fails, any element that exists.
  Element EvalPiece(const ir::Node& node, const IndexMap::Piece& piece, Val condition) {
    if (piece.value) return Number(*piece.value, body.type(node.first_out).dtype());
    const uint32_t operand = node.in[static_cast<size_t>(piece.operand)];
    if (condition.b == nullptr) return Eval(operand, piece.index);
    const Dims& shape = body.type(operand).shape();
    Dims index = piece.index;
    for (size_t i = 0; i < index.size(); ++i) {
      if (Inside(index[i], shape[i])) continue;
      const Dim base = lane ? AtLane(index[i], 0) : index[i];
      Val safe = select(condition, Index(base), 0);
      index[i] = Coordinate(safe, LastIndex(shape[i]), base.divisor()) + (index[i] - base);
    }
    return Eval(operand, index);
  }

  // An index as an element of type `t`; a vector where it depends on the lane.
  Element Number(const Dim& value, DType t) {
    const Val number =
        Varies(value) ? EachLane([&](int i) { return Index(AtLane(value, i)); }) : Index(value);
    return {ConvertElement(number, DType::kI32, t), t};
  }

  // Gives the symbols that a gather reads their values. False when lanes read different indices.
  bool LoadIndices(const ir::Node& node, IndexMap& map) {
    for (const IndexMap::Load& l : map.loads) {
      if (Varies(l.index)) return false;
      Element e = Eval(node.in[static_cast<size_t>(l.operand)], l.index);
      if (BitWidth(e.dtype) > 32)
        e.v = max(min(e.v, INT32_MAX), INT32_MIN);  // outside stays outside
      at.emplace_back(l.defines, convert(e.v, DType::kI32));
    }
    return true;
  }

  Element EvalMovement(const ir::Node& node, const Dims& index) {
    const uint32_t value = node.first_out;
    const DType dtype = body.type(value).dtype();
    IndexMap map = node.op.Map(body.TypesOf(node.in), index);
    if (!LoadIndices(node, map)) return EvalEachLane(value, index);

    struct Part {
      Val condition;
      Element element;
    };
    std::vector<Part> parts;
    bool complete = false;
    for (const IndexMap::Piece& piece : map.pieces) {
      if (!piece.value &&
          body.type(node.in[static_cast<size_t>(piece.operand)]).elements() == Dim(0))
        continue;
      bool split = false;
      const std::optional<Val> condition = Condition(piece, split);
      if (split) return EvalEachLane(value, index);
      if (!condition) continue;
      parts.push_back({*condition, EvalPiece(node, piece, *condition)});
      complete = condition->b == nullptr;
      if (complete) break;
    }
    Element out =
        complete ? parts.back().element : Element{StoredLiteral(b, dtype, map.fill), dtype};
    if (complete) parts.pop_back();
    for (size_t i = parts.size(); i-- > 0;)
      out.v = select(parts[i].condition, parts[i].element.v, out.v);
    return out;
  }

  std::optional<Dim> VectorOf(DType t, const Dim& flat, int n) {
    return VectorAt(t, flat, LaneSymbol(n), n, region.caps());
  }

  Val LoadOne(int operand, DType t, const Dim& flat) {
    constexpr int kLanes = 4;
    for (int i = 0; shares_vectors && i < kLanes; ++i)
      if (const auto vector = VectorOf(t, flat - i + Dim(LaneSymbol(kLanes)), kLanes))
        return b.Extract(storage.Load(operand, t, Index(*vector), kLanes), i);
    return storage.Load(operand, t, Index(flat));
  }

  Element Load(int operand, const ir::Type& type, const Dims& index) {
    const DType t = type.dtype();
    // Only conditions that never hold ask for an element where there is none.
    if (type.elements() == Dim(0)) return {StoredLiteral(b, t, 0), t};
    const Dim flat = Flatten(index, type.shape());
    if (!Varies(flat)) return {LoadOne(operand, t, flat), t};
    if (const auto vector = VectorOf(t, flat, lanes))
      return {storage.Load(operand, t, Index(*vector), lanes), t};
    return {EachLane([&](int i) { return LoadOne(operand, t, AtLane(flat, i)); }), t};
  }

  // ---- writing ----------------------------------------------------------------------------------

  void Store(int operand, const ir::Type& type, const Dims& index, Val value) {
    const DType t = type.dtype();
    const Dim flat = Flatten(index, type.shape());
    if (lane == nullptr) return storage.Store(operand, t, Index(flat), value);
    value = splat(value, lanes);
    if (const auto vector = VectorOf(t, flat, lanes))
      return storage.Store(operand, t, Index(*vector), value);
    for (int i = 0; i < lanes; ++i)
      storage.Store(operand, t, Index(AtLane(flat, i)), b.Extract(value, i));
  }

  // Stores those of the call's elements that belong to the result.
  void StorePart(int operand, const ir::Type& type, const IndexMap::Piece& place, Val value) {
    bool split = false;
    const std::optional<Val> condition = Condition(place, split);
    if (split) {
      ForEachLane([&](int i, const Axes& at) {
        StorePart(operand, type, At(place, at),
                  value.type().lanes > 1 ? b.Extract(value, i) : value);
      });
    } else if (condition && condition->b != nullptr) {
      b.If(*condition, [&] { Store(operand, type, place.index, value); });
    } else if (condition) {
      Store(operand, type, place.index, value);
    }
  }

  static IndexMap::Piece At(IndexMap::Piece place, const Axes& by) {
    place.index = Substitute(place.index, by);
    for (IndexMap::Range& w : place.when) w.value = w.value.Substitute(by);
    return place;
  }

  // The axes of a result of the anchor at `index`.
  Axes AxesAt(const Dims& index, int result) const {
    Axes by;
    for (size_t i = 0; i < index.size(); ++i) by.emplace(region.axes(result)[i], index[i]);
    return by;
  }

  // What follows the value `first`, of which `by` says which element it is, before `end`, where
  // there is one.
  void RunEpilogue(uint32_t first, const ir::Node* end, const Axes& by, Val result) {
    finished[first] = {result, body.type(first).dtype()};
    const int which = region.PlaceOf(first)->operand;
    for (const ir::Node& node : body.nodes()) {
      if (&node == end) return;
      const auto* place = region.PlaceOf(node.first_out);
      if (place == nullptr || place->operand != which || node.first_out <= first) continue;
      if (node.op.def().scalar == nullptr) {
        const Element same = finished.at(node.in[0]);  // a copy: the map may move what it holds
        finished[node.first_out] = same;
        continue;
      }
      const Element made = EvalElementWise(node, Substitute(place->index, by));
      finished[node.first_out] = made;
    }
  }

  Builder& b;
  const Region& region;
  const ir::Function& body;
  Storage storage;
  std::vector<std::pair<ir::SymbolRef, Val>> at;
  std::map<std::tuple<Id, int64_t, int64_t>, ir::SymbolRef> coordinates;
  std::array<ir::SymbolRef, 5> lane_symbols;
  ir::SymbolRef lane;  // of the call in progress; null for one element
  int lanes = 1;
  bool shares_vectors = false;
  std::vector<IndexMap::Range> tests;
  absl::flat_hash_map<Place, Element> seen;         // within one call
  absl::flat_hash_map<uint32_t, Element> finished;  // what follows the anchor, within Finish
};

// ---- Elements ----------------------------------------------------------------------------------

Elements::Elements(Builder& b, const Region& r, Launch& launch)
    : state_(std::make_shared<State>(b, r, launch)) {}

Dim Elements::Coordinate(Val v, int64_t max, int64_t divisor) {
  return state_->Coordinate(v, max, divisor);
}

Dim Elements::Lane(int lanes) { return lanes == 1 ? Dim(0) : Dim(state_->LaneSymbol(lanes)); }

void Elements::ShareVectors() { state_->shares_vectors = true; }

bool Elements::Certain(const IndexMap::Range& range) { return state_->Certain(range); }

const std::vector<IndexMap::Range>& Elements::tests() const { return state_->tests; }

Val Elements::Value(const Dim& index) { return state_->Index(index); }

Val Elements::At(int anchor_operand, const Dims& index, int lanes) {
  State& s = *state_;
  s.Begin(lanes);
  const uint32_t value = s.region.anchor()->in[static_cast<size_t>(anchor_operand)];
  return splat(s.Eval(value, index).v, lanes);
}

Elements::Place Elements::PlaceOf(int anchor_operand, const Dims& index, int count) {
  State& s = *state_;
  constexpr int kLanes = 4;
  const Region::Source from = *s.region.SourceOf(anchor_operand, index);
  const DType t = s.region.anchor_inputs()[static_cast<size_t>(anchor_operand)].dtype();
  return {s.storage.ViewOf(from.argument, Type{s.storage.StoredType(t)}.Lanes(kLanes)),
          s.Index(FloorDiv(from.flat, kLanes)), count / kLanes};
}

void Elements::Finish(const Dims& index, Val anchor_result, int lanes, int result) {
  State& s = *state_;
  s.Begin(lanes);
  const ir::Node *anchor = s.region.anchor(), *reduction = s.region.reduction();
  const State::Axes by = s.AxesAt(index, result);
  if (anchor != nullptr) {
    const ir::Node* first = reduction != nullptr ? reduction : anchor;
    s.RunEpilogue(first->first_out + static_cast<uint32_t>(result), nullptr, by, anchor_result);
  }
  const Dims& shape = s.region.anchor_output(result).shape();
  struct Store {
    int operand;
    const ir::Type& type;
    IndexMap::Piece place;
    Val value;
  };
  std::vector<Store> stores;  // all are computed before one is stored
  int operand = static_cast<int>(s.body.arguments().size());
  for (const ir::Function::Result& r : s.body.results()) {
    const int here = operand++;
    const auto* place = anchor != nullptr ? s.region.PlaceOf(r.value) : nullptr;
    if ((place != nullptr ? place->operand : 0) != result) continue;
    const ir::Type& type = s.body.type(r.value);
    IndexMap::Piece at{.operand = 0, .index = index};
    if (place != nullptr)
      at = State::At(*place, by);
    else if (type.shape() != shape)
      at.index = Unflatten(Flatten(index, shape), type.shape());
    const Val value = s.Eval(r.value, at.index).v;
    stores.push_back({here, type, std::move(at), value});
  }
  for (const Store& v : stores) s.StorePart(v.operand, v.type, v.place, v.value);
}

Val Elements::Reduced(const Dims& index, Val anchor_result, int lanes) {
  State& s = *state_;
  s.Begin(lanes);
  const ir::Node* reduction = s.region.reduction();
  s.RunEpilogue(s.region.anchor()->first_out, reduction, s.AxesAt(index, 0), anchor_result);
  return splat(s.finished.at(reduction->in[0]).v, lanes);
}

Val Elements::LoadFrom(int operand, Type elem, const Dim& index) {
  return state_->storage.Load(operand, elem.elem, Value(index), elem.lanes);
}

void Elements::StoreTo(int operand, const Dim& index, Val value) {
  state_->storage.Store(operand, value.type().elem, Value(index), value);
}

Val Elements::LoadScratch(int i, Type elem, const Dim& index) {
  return LoadFrom(state_->region.scratch_begin() + i, elem, index);
}

void Elements::StoreScratch(int i, const Dim& index, Val value) {
  StoreTo(state_->region.scratch_begin() + i, index, value);
}

Val Elements::AtomicScratch(int i, AtomicKind kind, const Dim& index, Val value) {
  return state_->storage.Atomic(state_->region.scratch_begin() + i, kind, Value(index), value);
}

}  // namespace forge::codegen
