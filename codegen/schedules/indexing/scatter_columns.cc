// SPDX-License-Identifier: Apache-2.0
// Scatter with an invocation for each column along the axis: it applies the updates of its column
// in their order.
#include "codegen/region/index.h"
#include "codegen/region/storage.h"
#include "codegen/schedules/indexing/scatter.h"

namespace forge::codegen {
namespace {
namespace scatter_columns {

struct ScatterColumns {
  int64_t workgroup = 64;
  int64_t lanes = 4;
  static constexpr Field kFields[] = {
      FieldOf<&ScatterColumns::workgroup>("workgroup", "Invocations in a workgroup.",
                                          "32|64|128|256"),
      FieldOf<&ScatterColumns::lanes>("lanes", "Neighbouring columns to an invocation.", "1|2|4")};
};

// Sums and products of narrow floats are not rounded before the end.
bool Accumulates(const ScatterForm& s) {
  return IsFloat(s.dtype) && ComputeType(s.dtype) != s.dtype &&
         (s.op.mode == ir::ScatterMode::kAdd || s.op.mode == ir::ScatterMode::kMul);
}

// Columns that lie side by side in x and in the updates, and share their indices.
ScatterColumns Defaults(const Region&, const ScatterForm& s) {
  int64_t lanes = 4;
  const bool shared = s.axis + 1 < s.x.size() && s.indices.size() == s.updates.size() &&
                      s.indices.back() == ir::Dim(1);
  while (lanes > 1 &&
         (!shared || s.x.back().divisor() % lanes != 0 || s.updates.back().divisor() % lanes != 0))
    lanes /= 2;
  return ScatterColumns{.lanes = lanes};
}

Verdict Fits(const Region& r, const ScatterForm& s, const ScatterColumns& t) {
  if (Verdict v = ScatterStands(r); !v) return v;
  if (Defaults(r, s).lanes % t.lanes != 0)
    return Verdict::No("neighbouring columns do not share indices");
  const ir::SymbolRef lane = NewCoordinate("lane", t.lanes - 1);
  if (!VectorAt(s.dtype, ir::Dim(lane), lane, static_cast<int>(t.lanes), r.caps()) && t.lanes > 1)
    return Verdict::No("elements share words with those that stay");
  if (Accumulates(s))
    if (Verdict v = ScratchFits(r, ir::Product(s.x) * 4); !v) return v;
  return WorkgroupFits(t.workgroup, r.caps());
}

// One column, or `lanes` of them.
class Column {
 public:
  Column(Emission& m, const ScatterForm& s, const ir::Dims& place, int lanes)
      : m_(m), s_(s), place_(place), lanes_(lanes) {}

  void Apply() const {
    ForAll([&](const ir::Dims& at, const ir::Dims& to, const ir::Dim& vector) {
      const Val update = m_.e.At(2, at, lanes_);
      const bool reads = s_.op.mode != ir::ScatterMode::kSet;
      m_.e.Finish(to, reads ? Updated(s_, ElementBefore(m_, s_, vector, lanes_), update) : update,
                  lanes_);
    });
  }

  // The same with elements that stay in f32, in scratch, until the last update.
  void Accumulate() const {
    const Type wide = Type{ComputeType(s_.dtype)}.Lanes(lanes_);
    ForAll([&](const ir::Dims&, const ir::Dims&, const ir::Dim& vector) {
      m_.e.StoreScratch(0, vector, ElementBefore(m_, s_, vector, lanes_));
    });
    ForAll([&](const ir::Dims& at, const ir::Dims&, const ir::Dim& vector) {
      const Val update = m_.e.At(2, at, lanes_);
      m_.e.StoreScratch(0, vector, Updated(s_, m_.e.LoadScratch(0, wide, vector), update));
    });
    ForAll([&](const ir::Dims&, const ir::Dims& to, const ir::Dim& vector) {
      m_.e.Finish(to, m_.e.LoadScratch(0, wide, vector), lanes_);
    });
  }

 private:
  using Body =
      absl::FunctionRef<void(const ir::Dims& at, const ir::Dims& to, const ir::Dim& vector)>;
  // Calls `body` in each step of a loop over the updates.
  void ForAll(Body body) const {
    m_.Loop(s_.count(), {}, [&](const ir::Dim& i, const Vals&) {
      ir::Dims at = place_;
      at.insert(at.begin() + static_cast<std::ptrdiff_t>(s_.axis), i);
      ForTarget(m_, s_, at, [&](const ir::Dims& to) {
        ir::Dims first = to;
        if (lanes_ == 1) return body(at, to, Flatten(first, s_.x));
        const ir::Dim along = at.back() * lanes_;
        first.back() = along;
        ir::Dims all_at = at, all_to = to;
        all_at.back() = all_to.back() = along + m_.e.Lane(lanes_);
        body(all_at, all_to, FloorDiv(Flatten(first, s_.x), lanes_));
      });
      return Vals{};
    });
  }

  Emission& m_;
  const ScatterForm& s_;
  const ir::Dims& place_;
  int lanes_;
};

Program Emit(const Region& r, const ScatterForm& s, const ScatterColumns& t) {
  const int lanes = static_cast<int>(t.lanes);
  ir::Dims columns = s.columns();
  if (lanes > 1) columns.back() = FloorDiv(columns.back(), lanes);
  std::vector<Launch> launches;
  launches.push_back(ForPlaces(r, fmt::format("scatter_columns_x{}", lanes), t.workgroup, columns,
                               [&](Emission& m, const ir::Dims& place) {
                                 const Column column(m, s, place, lanes);
                                 Accumulates(s) ? column.Accumulate() : column.Apply();
                               }));
  std::vector<int64_t> scratch;
  if (Accumulates(s)) scratch.push_back(ir::Product(s.x).max() * 4);
  return ScatterProgram(r, std::move(launches), std::move(scratch));
}

}  // namespace scatter_columns
}  // namespace

const Schedule kScatterColumns =
    ScheduleOn<scatter_columns::ScatterColumns, ScatterFormOf, scatter_columns::Defaults,
               scatter_columns::Fits, scatter_columns::Emit>("scatter_columns");

}  // namespace forge::codegen
