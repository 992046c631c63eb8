// SPDX-License-Identifier: Apache-2.0
#include "codegen/region/region.h"

#include <algorithm>
#include <numeric>

#include "codegen/region/index.h"
#include "codegen/region/storage.h"
#include "ir/dim/broadcast.h"
#include "ir/op/axes.h"
#include "ir/ops/norm/layer_norm.h"
#include "ir/ops/reduction/reduce.h"

namespace forge::codegen {
namespace {

using ir::Dim;
using ir::Dims;

// A fresh coordinate for each axis of `shape`.
std::vector<ir::SymbolRef> AxesOf(const Dims& shape) {
  std::vector<ir::SymbolRef> axes;
  axes.reserve(shape.size());
  for (size_t i = 0; i < shape.size(); ++i)
    axes.push_back(NewCoordinate(fmt::format("x{}", i), LastIndex(shape[i])));
  return axes;
}

Dims AsDims(std::span<const ir::SymbolRef> axes) {
  Dims out;
  for (const ir::SymbolRef& s : axes) out.emplace_back(s);
  return out;
}

absl::Status CheckType(const ir::Type& t, std::string_view what, const Caps& caps) {
  if (!t.is_tensor()) return Unimplemented("{} is {}, not a tensor", what, t.ToText());
  if (Verdict v = CanCompute(t.dtype(), caps); !v) return Unimplemented("{}: {}", what, v.text());
  if (Verdict v = CanNumber(t); !v && t.is_constant())
    return Unimplemented("{}: {}", what, v.text());
  return absl::OkStatus();
}

// Where the size of `t` is not known, it is taken for one that a storage buffer holds.
absl::StatusOr<int> PartsFor(const ir::Type& t, const Caps& caps) {
  FORGE_ASSIGN_OR_RETURN(const Dim bytes, t.bytes());
  if (!bytes.is_constant() || bytes.constant() <= caps.max_operand_bytes) return 1;
  const int64_t part = PartBytes(caps);
  if (part == 0 || bytes.constant() > part * caps.max_operands)
    return Unimplemented("its {} bytes are more than {} storage buffers of {} hold",
                         bytes.constant(), caps.max_operands, caps.max_operand_bytes);
  return static_cast<int>((bytes.constant() + part - 1) / part);
}

// Is nothing in `d` open but coordinates?
bool IsKnownBut(const Dim& d, std::span<const ir::SymbolRef> coordinates) {
  std::vector<ir::SymbolRef> symbols;
  d.CollectSymbols(symbols);
  return std::all_of(symbols.begin(), symbols.end(), [&](const ir::SymbolRef& s) {
    return std::find(coordinates.begin(), coordinates.end(), s) != coordinates.end();
  });
}

// Numbers that a movement makes of indices must fit the 32 bits in which those are computed; they
// are looked at once a binding has made them known.
absl::Status CheckNumbers(const ir::Node& node, const ir::Function& body) {
  const ir::Type& out = body.type(node.first_out);
  if (node.op.def().map == nullptr || !out.is_constant() || out.elements() == Dim(0))
    return absl::OkStatus();
  const std::vector<ir::SymbolRef> axes = AxesOf(out.shape());
  const ir::IndexMap map = node.op.Map(body.TypesOf(node.in), AsDims(axes));
  for (const ir::IndexMap::Piece& p : map.pieces)
    if (p.value && IsKnownBut(*p.value, axes) &&
        (p.value->min() < INT32_MIN || p.value->max() > INT32_MAX))
      return Unimplemented("{} makes numbers of more than 32 bits", node.op.name());
  return absl::OkStatus();
}

// The movement's map when each element of its result is one of its only operand's.
struct OneToOne {
  Dims source, target;
};
absl::StatusOr<OneToOne> MapOf(const ir::Node& node, const ir::Function& body) {
  const Dims& out = body.type(node.first_out).shape();
  OneToOne r{.source = {}, .target = AsDims(AxesOf(out))};
  const ir::IndexMap map = node.op.Map(body.TypesOf(node.in), r.target);
  const bool whole = node.in.size() == 1 && map.loads.empty() && map.pieces.size() == 1 &&
                     !map.pieces[0].value &&
                     std::all_of(map.pieces[0].when.begin(), map.pieces[0].when.end(), AlwaysHolds);
  if (!whole) return Unimplemented("{} after the anchor adds elements", node.op.name());
  r.source = map.pieces[0].index;
  return r;
}

// Solves source = place for the target's coordinates where each source axis is one of them, counted
// from some element on, or stays at one element.
std::optional<Region::Place> Invert(const OneToOne& map, const Dims& in, const Dims& out,
                                    const Region::Place& place) {
  Region::Place r{.operand = place.operand, .index = Dims(out.size()), .when = place.when};
  std::vector<bool> known(out.size());
  for (size_t i = 0; i < map.source.size(); ++i) {
    const Dim& source = map.source[i];
    if (source.is_constant()) {
      if (!(in[i] == Dim(1))) r.when.push_back({place.index[i], source, source + 1});
      continue;
    }
    const auto at = std::find_if(map.target.begin(), map.target.end(),
                                 [&](const Dim& t) { return (source - t).is_constant(); });
    if (at == map.target.end()) return std::nullopt;
    const size_t axis = static_cast<size_t>(at - map.target.begin());
    if (known[axis]) return std::nullopt;
    known[axis] = true;
    r.index[axis] = place.index[i] - (source - *at);
    if (!(in[i] == out[axis])) r.when.push_back({r.index[axis], 0, out[axis]});
  }
  for (size_t i = 0; i < out.size(); ++i)
    if (!known[i] && map.target[i].max() > 0) return std::nullopt;
  return r;
}

// Equal, or unlike extents that a binding may make equal.
bool MayHaveElementsOf(const ir::Type& from, const ir::Type& to) {
  return from.elements() == to.elements() || ir::MayEqualBroadcast(from.shape(), to.shape());
}

}  // namespace

absl::StatusOr<Region> Region::Of(const ir::Function& body, const Caps& caps) {
  FORGE_RETURN_IF_ERROR(body.status());
  Region r;
  r.body_ = &body;
  r.caps_ = &caps;
  if (body.results().empty() || !body.updates().empty() || !body.reads().empty())
    return Unimplemented("a region has results and touches no variables");
  FORGE_RETURN_IF_ERROR(r.CheckOperands());
  FORGE_RETURN_IF_ERROR(r.FindAnchor());
  FORGE_RETURN_IF_ERROR(r.PlaceResults());
  return r;
}

const ir::Type& Region::anchor_output(int result) const {
  if (anchor_ == nullptr) return body_->type(body_->results()[0].value);
  return body_->type(anchor_->first_out + static_cast<uint32_t>(result));
}

int Region::operand_count() const {
  return static_cast<int>(body_->arguments().size() + body_->results().size());
}

int Region::PartsOf(int operand) const { return parts_[static_cast<size_t>(operand)]; }

int64_t Region::bindings() const {
  return std::accumulate(parts_.begin(), parts_.end(), int64_t{0});
}

Region Region::OfNorm() const {
  Region r = *this;
  r.anchor_ = std::exchange(r.norm_, nullptr);
  r.reduction_ = nullptr;
  r.anchor_inputs_ = body_->TypesOf(r.anchor_->in);
  return r;
}

Region Region::WithoutReduction() const {
  Region r = *this;
  r.reduction_ = nullptr;
  return r;
}

std::optional<int> Region::ArgumentOf(int anchor_operand) const {
  const uint32_t value = anchor_->in[static_cast<size_t>(anchor_operand)];
  const ir::Function::Origin& from = body_->origin(value);
  if (from.kind != ir::Function::Origin::kArgument || body_->UseCounts()[value] != 1)
    return std::nullopt;
  return static_cast<int>(from.index);
}

const Region::Place* Region::PlaceOf(uint32_t value) const {
  return places_[value].has_value() ? &*places_[value] : nullptr;
}

bool Region::AnyLoad(uint32_t value, const Dims& at, Through through, LoadTest test) const {
  if (body_->origin(value).kind != ir::Function::Origin::kNode)
    return test(body_->type(value), Flatten(at, body_->type(value).shape()));
  const ir::Node& node = body_->nodes()[body_->origin(value).index];
  if (&node == norm_) return AnyLoad(node.in[0], at, through, test);
  if (node.op.def().scalar != nullptr) {
    const auto loads = [&](uint32_t v) {
      return AnyLoad(v, BroadcastIndex(at, body_->type(v).shape()), through, test);
    };
    if (through == Through::kAll) return std::any_of(node.in.begin(), node.in.end(), loads);
    return loads(*std::max_element(node.in.begin(), node.in.end(), [&](uint32_t a, uint32_t b) {
      return body_->type(a).elements().max() < body_->type(b).elements().max();
    }));
  }
  const ir::IndexMap map = node.op.Map(body_->TypesOf(node.in), at);
  if (!map.loads.empty() || (through == Through::kLargest && map.pieces.size() != 1)) return false;
  return std::any_of(map.pieces.begin(), map.pieces.end(), [&](const ir::IndexMap::Piece& p) {
    return !p.value && AnyLoad(node.in[static_cast<size_t>(p.operand)], p.index, through, test);
  });
}

bool Region::Contiguous(int anchor_operand, const Dims& index, const ir::SymbolRef& lane,
                        int lanes) const {
  return AnyLoad(anchor_->in[static_cast<size_t>(anchor_operand)], index, Through::kLargest,
                 [&](const ir::Type& type, const Dim& flat) {
                   return VectorAt(type.dtype(), flat, lane, lanes, *caps_).has_value();
                 });
}

std::optional<Region::Source> Region::SourceOf(int anchor_operand, Dims index) const {
  uint32_t value = anchor_->in[static_cast<size_t>(anchor_operand)];
  while (body_->origin(value).kind == ir::Function::Origin::kNode) {
    const ir::Node& node = body_->nodes()[body_->origin(value).index];
    if (&node == norm_ || node.op.def().scalar != nullptr) return std::nullopt;
    const ir::IndexMap map = node.op.Map(body_->TypesOf(node.in), index);
    if (!map.loads.empty() || map.pieces.size() != 1) return std::nullopt;
    const ir::IndexMap::Piece& piece = map.pieces[0];
    if (piece.value || !std::all_of(piece.when.begin(), piece.when.end(), AlwaysHolds))
      return std::nullopt;
    value = node.in[static_cast<size_t>(piece.operand)];
    index = piece.index;
  }
  if (body_->origin(value).kind != ir::Function::Origin::kArgument) return std::nullopt;
  return Source{static_cast<int>(body_->origin(value).index),
                Flatten(index, body_->type(value).shape())};
}

int64_t Region::BindingsBehind(const std::vector<uint32_t>& values) const {
  std::vector<bool> needed(places_.size());
  for (uint32_t v : values)
    if (v != ir::kAbsent) needed[v] = true;
  const auto& nodes = body_->nodes();
  for (auto n = nodes.rbegin(); n != nodes.rend(); ++n) {
    if (&*n == anchor_ || !needed[n->first_out]) continue;
    for (uint32_t v : n->in)
      if (v != ir::kAbsent) needed[v] = true;
  }
  int64_t bindings = 0;
  for (size_t i = 0; i < body_->arguments().size(); ++i)
    if (needed[body_->arguments()[i].value]) bindings += parts_[i];
  return bindings;
}

bool Region::LiesAlong(size_t axis, size_t other, int lanes) const {
  const ir::SymbolRef lane = NewCoordinate("lane", lanes - 1);
  Dims index = AsDims(axes());
  if (index[axis].max() + 1 < lanes || anchor_output().shape()[axis].divisor() % lanes != 0)
    return false;
  const int64_t last_block = index[axis].max() + 1 - lanes;
  index[axis] = Dim(NewCoordinate("block", last_block, lanes)) + Dim(lane);
  return AnyLoad(body_->results()[0].value, index, Through::kAll,
                 [&](const ir::Type& type, const Dim& flat) {
                   return DependsOn(flat, axes()[other]) &&
                          VectorAt(type.dtype(), flat, lane, lanes, *caps_).has_value();
                 });
}

absl::Status Region::CheckOperands() {
  const std::vector<int> uses = body_->UseCounts();
  for (uint32_t v = 0; v < body_->value_count() && is_dense(); ++v)
    encoding_ = body_->type(v).encoding();
  std::string divided;
  const auto add = [&](uint32_t value, std::string_view name, bool used) -> absl::Status {
    parts_.push_back(0);
    if (!used) return absl::OkStatus();
    FORGE_RETURN_IF_ERROR(CheckType(body_->type(value), name, *caps_));
    const absl::StatusOr<int> parts = PartsFor(body_->type(value), *caps_);
    if (!parts.ok()) return Annotate(parts.status(), name);
    parts_.back() = *parts;
    if (*parts > 1)
      divided += fmt::format(", {} of them parts of {} of at most {} bytes", *parts, name,
                             PartBytes(*caps_));
    return absl::OkStatus();
  };
  for (const ir::Function::Input& a : body_->arguments())
    FORGE_RETURN_IF_ERROR(add(a.value, a.name, uses[a.value] > 0));
  for (const ir::Function::Result& r : body_->results())
    FORGE_RETURN_IF_ERROR(add(r.value, r.name, true));
  if (bindings() > caps_->max_operands)
    return Unimplemented("{} operands and results{}, one kernel binds {}", bindings(), divided,
                         caps_->max_operands);
  return absl::OkStatus();
}

absl::Status Region::FindAnchor() {
  for (const ir::Node& node : body_->nodes()) {
    for (uint16_t i = 0; i < node.outs; ++i)
      FORGE_RETURN_IF_ERROR(CheckType(body_->type(node.first_out + i), node.op.name(), *caps_));
    FORGE_RETURN_IF_ERROR(CheckNumbers(node, *body_));
    if (node.op.def().scalar != nullptr || node.op.def().map != nullptr) continue;
    const bool alone = anchor_ == nullptr || anchor_->outs > 1;
    if (!alone && reduction_ == nullptr && node.op.Is<ir::Reduce>()) {
      reduction_ = &node;
      continue;
    }
    if (!alone && norm_ == nullptr && anchor_->op.Is<ir::LayerNorm>())
      norm_ = anchor_;
    else if (anchor_ != nullptr)
      return Unimplemented("{} and {} are two anchors", anchor_->op.name(), node.op.name());
    anchor_ = &node;
  }
  if (anchor_ != nullptr) anchor_inputs_ = body_->TypesOf(anchor_->in);
  if (norm_ != nullptr && bindings() + 1 > caps_->max_operands)
    return Unimplemented("no room for scratch beside {} operands", bindings());
  return absl::OkStatus();
}

bool Region::PrecedesReduction(uint32_t value) const {
  return reduction_ != nullptr && value < reduction_->first_out;
}

bool Region::FollowsAnchor(const ir::Node& node) const {
  return std::any_of(node.in.begin(), node.in.end(),
                     [&](uint32_t v) { return v != ir::kAbsent && places_[v].has_value(); });
}

absl::Status Region::PlaceResults() {
  places_.resize(body_->value_count());
  const ir::Type& out = anchor_output();
  if (anchor_ == nullptr) axes_.push_back(AxesOf(out.shape()));
  bool after = false;
  for (const ir::Node& node : body_->nodes()) {
    if (&node == anchor_) {
      for (int k = 0; k < node.outs; ++k) {
        axes_.push_back(AxesOf(anchor_output(k).shape()));
        places_[node.first_out + static_cast<uint32_t>(k)] =
            Place{.operand = k, .index = AsDims(axes(k))};
      }
      after = true;
    } else if (&node == reduction_) {
      FORGE_RETURN_IF_ERROR(PlaceReduction());
    } else if (after && FollowsAnchor(node)) {
      FORGE_RETURN_IF_ERROR(node.op.def().scalar != nullptr ? PlaceElementWise(node)
                                                            : PlaceMovement(node));
    }
  }
  for (const ir::Function::Result& r : body_->results()) {
    if (reduction_ != nullptr && (PrecedesReduction(r.value) || !places_[r.value].has_value()))
      return Unimplemented("result {} is not made of what {} makes", r.name, reduction_->op.name());
    if (places_[r.value].has_value()) continue;
    if (!(body_->type(r.value).elements() == out.elements()))
      return Unimplemented("result {} has another number of elements than the anchor", r.name);
  }
  return absl::OkStatus();
}

absl::Status Region::PlaceReduction() {
  const auto& op = *reduction_->op.As<ir::Reduce>();
  const std::optional<Place>& from = places_[reduction_->in[0]];
  if (!from.has_value() || !from->when.empty())
    return Unimplemented("{} and {} are two anchors", anchor_->op.name(), reduction_->op.name());
  const size_t rank = from->index.size();
  FORGE_ASSIGN_OR_RETURN(const std::vector<int64_t> axes,
                         ir::NormalAxes(op.axes, static_cast<int64_t>(rank)));
  Dims kept, reduced, index;
  for (size_t i = 0; i < rank; ++i) {
    const bool stays = !op.axes.empty() && std::count(axes.begin(), axes.end(), i) == 0;
    (stays ? kept : reduced).push_back(from->index[i]);
    if (stays || op.keep_dims) index.push_back(stays ? from->index[i] : Dim(0));
  }
  for (const ir::SymbolRef& axis : this->axes()) {
    reduced_.push_back(DependsOn(reduced, axis));
    if (reduced_.back() && DependsOn(kept, axis))
      return Unimplemented("{} reads parts of an axis of {}", reduction_->op.name(),
                           anchor_->op.name());
  }
  places_[reduction_->first_out] = Place{.operand = 0, .index = std::move(index)};
  return absl::OkStatus();
}

absl::Status Region::PlaceElementWise(const ir::Node& node) {
  const Dims& shape = body_->type(node.first_out).shape();
  std::optional<Place>& place = places_[node.first_out];
  for (uint32_t v : node.in) {
    if (v == ir::kAbsent || !places_[v].has_value()) continue;
    if (!MayHaveElementsOf(body_->type(v), body_->type(node.first_out)))
      return Unimplemented("{} repeats the anchor's elements", node.op.name());
    if (PrecedesReduction(v) && !PrecedesReduction(node.first_out))
      return Unimplemented("{} reads what is reduced", node.op.name());
    if (!places_[v]->when.empty())
      return Unimplemented("{} follows a part of the anchor's elements", node.op.name());
    const Dims& index = places_[v]->index;
    Dims here(shape.size() - index.size(), Dim(0));
    here.insert(here.end(), index.begin(), index.end());
    if (place.has_value() && (place->operand != places_[v]->operand || place->index != here))
      return Unimplemented("{} meets the anchor's elements at two places", node.op.name());
    place = Place{.operand = places_[v]->operand, .index = std::move(here)};
  }
  return absl::OkStatus();
}

absl::Status Region::PlaceMovement(const ir::Node& node) {
  if (PrecedesReduction(node.in[0]) && !PrecedesReduction(node.first_out))
    return Unimplemented("{} reads what is reduced", node.op.name());
  FORGE_ASSIGN_OR_RETURN(const OneToOne map, MapOf(node, *body_));
  const ir::Type &in = body_->type(node.in[0]), &out = body_->type(node.first_out);
  const Place& place = *places_[node.in[0]];
  std::optional<Place> moved = Invert(map, in.shape(), out.shape(), place);
  if (!moved && in.elements() == out.elements() &&
      Flatten(map.source, in.shape()) == Flatten(map.target, out.shape()))
    moved = Place{.operand = place.operand,
                  .index = Unflatten(Flatten(place.index, in.shape()), out.shape()),
                  .when = place.when};
  if (!moved) return Unimplemented("{} after the anchor cannot be inverted", node.op.name());
  places_[node.first_out] = std::move(moved);
  return absl::OkStatus();
}

}  // namespace forge::codegen
