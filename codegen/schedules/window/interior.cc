// SPDX-License-Identifier: Apache-2.0
// Interior and edge apart: most windows lie inside of their image, and need no test. Where they do
// is told by the ranges of coordinates: the tests that a body makes are tried with narrower ones.
#include <algorithm>

#include "codegen/schedules/emission.h"
#include "ir/dim/interval.h"

namespace forge::codegen {
namespace {

using ir::Dim;
using ir::Dims;
using ir::Interval;
using Test = ir::IndexMap::Range;
using PlaceBody = absl::FunctionRef<void(Emission& m, const Dims& place)>;

// A part of each axis of a space.
using Box = std::vector<Interval>;

int64_t ExtentOf(const Interval& range) { return range.high - range.low + 1; }

Dims ExtentsOf(const Box& box) {
  Dims out;
  for (const Interval& range : box) out.push_back(ExtentOf(range));
  return out;
}

size_t SizeOf(const Kernel& k) {
  size_t n = 0;
  for (const Block& b : k.blocks) n += b.insts.size();
  return n;
}

// What is found out by emitting a body at places of a box, whose axes have coordinates of their
// own.
struct Trial {
  std::vector<Test> tests;
  Dims place;  // in the box
  size_t size = 0;
};

Trial Try(const Region& r, const Box& box, PlaceBody body) {
  Emission m(r, "", {1, 1, 1});
  const Val any = m.b.Builtin(BuiltinKind::kWorkgroupX);
  Dims inside, place;
  for (const Interval& in : box) {
    const Val v = any + static_cast<double>(place.size());
    inside.push_back(m.e.Coordinate(v, in.high - in.low));
    place.push_back(inside.back() + in.low);
  }
  body(m, place);
  return {m.e.tests(), inside, SizeOf(m.launch.kernel)};
}

// Where on an axis of `count` a test need not be made. Edges are looked for near the ends alone;
// nullopt: there is no such part, or more than the place along this axis decides.
std::optional<Interval> Untested(const Test& t, const ir::SymbolRef& place, int64_t count) {
  const auto holds = [&](const Interval& in) {
    const Dim at = Dim(NewCoordinate("inside", in.high - in.low)) + in.low;
    return AlwaysHolds({t.value.Substitute({{place, at}}), t.low, t.high});
  };
  const int64_t most = count / 4;
  Interval in{0, count - 1};
  while (in.low < most && !holds({in.low, in.low})) ++in.low;
  while (in.high > count - 1 - most && !holds({in.high, in.high})) --in.high;
  return holds(in) ? std::optional(in) : std::nullopt;
}

// The part of `box` where tests are certain that the place along one axis decides.
Box InteriorOf(const Box& box, const Trial& trial) {
  Box out = box;
  for (size_t i = 0; i < box.size(); ++i) {
    const int64_t count = ExtentOf(box[i]), low = box[i].low;
    if (count == 1) continue;
    const ir::SymbolRef symbol = trial.place[i].part().symbol;
    for (const Test& t : trial.tests) {
      if (!DependsOn(t.value, symbol)) continue;
      const std::optional<Interval> part = Untested(t, symbol, count);
      if (!part) continue;
      out[i].low = std::max(out[i].low, low + part->low);
      out[i].high = std::min(out[i].high, low + part->high);
    }
  }
  return out;
}

// The places of `space` outside of `box`: a slab for each axis that the box cuts, before and behind
// it, which is as long as the box along the axes before.
class Edge {
 public:
  Edge(const Dims& space, const Box& box) : space_(space), box_(box) {
    Dims extents = space;
    for (size_t i = 0; i < space.size(); ++i) {
      const int64_t inside = ExtentOf(box[i]);
      extents[i] = space[i] - inside;
      if (!(extents[i] == Dim(0))) slabs_.push_back({i, count_, extents});
      count_ = count_ + ir::Product(extents);
      extents[i] = inside;
    }
  }
  const Dim& count() const { return count_; }
  Dims At(Emission& m, const Dim& at) const {
    const Val v = m.e.Value(at);
    Vals index(space_.size());
    for (const Slab& slab : slabs_) {
      const Dims place = PlaceIn(m, slab, v);
      const Val here = v >= m.b.Scalar(slab.first);
      for (size_t i = 0; i < index.size(); ++i)
        index[i] = index[i] ? select(here, m.e.Value(place[i]), index[i]) : m.e.Value(place[i]);
    }
    Dims out;
    for (size_t i = 0; i < index.size(); ++i)
      out.push_back(m.e.Coordinate(index[i], LastIndex(space_[i])));
    return out;
  }

 private:
  struct Slab {
    size_t axis;
    Dim first;  // of its places
    Dims extents;
  };

  Dims PlaceIn(Emission& m, const Slab& slab, Val v) const {
    const int64_t last = LastIndex(ir::Product(slab.extents));
    const Val own = min(max(v - m.b.Scalar(slab.first), 0), static_cast<double>(last));
    Dims place = Unflatten(m.e.Coordinate(own, last), slab.extents);
    for (size_t i = 0; i < slab.axis; ++i) place[i] = place[i] + box_[i].low;
    const Val along = m.e.Value(place[slab.axis]);
    const Val behind = along + static_cast<double>(ExtentOf(box_[slab.axis]));
    const Val there = select(along < static_cast<double>(box_[slab.axis].low), along, behind);
    place[slab.axis] = m.e.Coordinate(there, LastIndex(space_[slab.axis]));
    return place;
  }

  const Dims& space_;
  const Box& box_;
  std::vector<Slab> slabs_;
  Dim count_ = 0;
};

// The workgroups of the interior come first.
Launch EmitApart(const Region& r, const std::string& name, int64_t workgroup, const Dims& space,
                 const Box& box, PlaceBody body) {
  Emission m(r, name, {static_cast<uint32_t>(workgroup), 1, 1});
  const Dims extents = ExtentsOf(box);
  const Edge edge(space, box);
  const Dim inside = ir::Product(extents), first = CeilDiv(inside, workgroup);
  const Emission::Work groups = m.Workgroups(first + CeilDiv(edge.count(), workgroup));
  const auto part = [&](Val group, const Dim& count, absl::FunctionRef<Dims(const Dim&)> place) {
    const Val index = group * static_cast<double>(workgroup) + m.b.Builtin(BuiltinKind::kLocalX);
    m.Guarded({index, count, groups.exact && count.divisor() % workgroup == 0},
              [&](const Dim& at) { body(m, place(at)); });
    return Vals{};
  };
  const auto inner = [&](const Dim& at) {
    Dims place = Unflatten(at, extents);
    for (size_t i = 0; i < place.size(); ++i) place[i] = place[i] + box[i].low;
    return place;
  };
  const Val begin = m.b.Scalar(first);
  m.b.If(
      groups.index < begin, [&] { return part(groups.index, inside, inner); },
      [&] {
        return part(groups.index - begin, edge.count(),
                    [&](const Dim& at) { return edge.At(m, at); });
      });
  return std::move(m).Take();
}

// Of instructions. Less is lost among twice the code: see docs/architecture.md.
constexpr double kLeastSaved = 0.08;

}  // namespace

Launch ForPlacesApart(const Region& r, const std::string& name, int64_t workgroup,
                      const Dims& space, PlaceBody body) {
  const auto whole = [&] { return ForPlaces(r, name, workgroup, space, body); };
  // A processor that stands for lanes runs both sides of any condition.
  const Dim count = ir::Product(space);
  if (r.caps().runs_on_cpu || !count.is_constant() || count.constant() < 1) return whole();
  Box box;
  for (const Dim& extent : space) box.push_back({0, extent.constant() - 1});
  const Trial all = Try(r, box, body);
  // What was a coordinate of its own behind one test may be the next one's place without it.
  Trial within = all;
  for (int i = 0; i < 2; ++i) {
    box = InteriorOf(box, within);
    within = Try(r, box, body);
  }
  const Dim inside = ir::Product(ExtentsOf(box));
  if (inside == count) return whole();
  const double share =
      static_cast<double>(inside.constant()) / static_cast<double>(count.constant());
  const double saved =
      share * (1 - static_cast<double>(within.size) / static_cast<double>(all.size));
  if (saved < kLeastSaved) return whole();
  return EmitApart(r, name, workgroup, space, box, body);
}

}  // namespace forge::codegen
