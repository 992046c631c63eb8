// SPDX-License-Identifier: Apache-2.0
// Sorting: rows that fit shared memory in one launch. Of longer ones each tile is sorted, then
// sorted runs are merged in pairs, a launch for each doubling. An invocation finds where its part
// of a merged run begins by a binary search.
#include "ir/ops/sorting/sort.h"

#include <bit>

#include "codegen/schedules/sort/tile.h"
#include "ir/ops/sorting/top_k.h"

namespace forge::codegen {
namespace {
namespace sort {

using ir::Dim;

// Elements that an invocation merges. Processors take more: finding the first one costs them as
// much as many.
int64_t MergedAtOnce(const Caps& caps) { return caps.runs_on_cpu ? 32 : 8; }

int64_t UpTo(int64_t count, int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

struct MergeForm : SortForm {
  std::optional<int64_t> k;  // of each row that are kept; absent: all
};

std::optional<MergeForm> FormOfSort(const Region& r) {
  if (const auto* op = r.AnchorAs<ir::Sort>())
    return MergeForm{SortFormOf(r, op->axis, op->descending), {}};
  if (const auto* op = r.AnchorAs<ir::TopK>())
    return MergeForm{SortFormOf(r, op->axis, op->largest), op->k};
  return std::nullopt;
}

// Sorted runs in scratch.
struct Runs {
  int64_t length, row;  // elements of a run and of all runs of a row
  int64_t count() const { return (row + length - 1) / length; }
};

// The steps for rows whose length is known.
struct MergeSort {
  MergeSort(const Region& region, const MergeForm& form, const SortTiles& tiles)
      : r(region), f(form), t(tiles), merged(MergedAtOnce(region.caps())) {
    kept = f.k.value_or(f.length());
    if (f.k)
      longest = static_cast<int64_t>(
          std::bit_ceil(static_cast<uint64_t>(std::max({kept, t.tile, merged}))));
  }
  Runs First() const {
    if (f.length() <= t.tile) return {t.tile, t.tile};
    return {t.tile, UpTo(f.length(), std::max(t.tile, merged))};
  }
  // Of runs merged in pairs; what is beyond the longest run is dropped.
  Runs After(const Runs& runs) const {
    const int64_t length = std::min(2 * runs.length, longest);
    return {length, length > runs.length ? runs.row : (runs.count() + 1) / 2 * length};
  }
  int64_t rows() const { return f.space.rows().constant(); }
  KeyedScratch Scratch() const { return {f.order, rows() * First().row}; }

  const Region& r;
  const MergeForm& f;
  const SortTiles& t;
  int64_t merged;
  int64_t kept = 0;  // of each row
  int64_t longest = int64_t{1} << 40;
};

// A level of the network costs a processor more than a merge from 16 elements on.
SortTiles Defaults(const Region& r, const MergeForm& f) {
  return DefaultSortTiles(r, f, r.caps().runs_on_cpu ? 16 : kLargeTile);
}

Verdict Fits(const Region& r, const MergeForm& f, const SortTiles& t) {
  if (Verdict v = SortTilesFit(r, f, t); !v) return v;
  const Dim& length = f.space.length();
  if (length.max() <= t.tile || !length.is_constant() || !f.space.rows().is_constant())
    return Verdict::Yes();
  const KeyedScratch scratch = MergeSort(r, f, t).Scratch();
  if (scratch.elements > kMostElements || scratch.Bytes(1)[0] > r.caps().max_operand_bytes)
    return Verdict::No("rows need too much scratch");
  return ScratchBinds(r);
}

// The sorted tiles of all rows: in scratch, or as results where a tile is a row.
Launch SortTilesOf(const MergeSort& s, std::string name) {
  const Runs runs = s.First();
  const bool last = runs.count() == 1;
  const auto load = [&](Emission& m, const Dim& tile, const Dim& position) {
    const Dim row = FloorDiv(tile, runs.count());
    return LoadKeyed(m, s.f, row, Mod(tile, runs.count()) * s.t.tile + position);
  };
  const auto store = [&](Emission& m, const Dim& tile, const Dim& position, const Keyed& v) {
    if (last) return FinishKeyed(m, s.f, tile, position, v.index);
    s.Scratch().Store(m, 0, tile * s.t.tile + position, v);
  };
  return EmitTileSort(s.r, s.f.order, s.t, std::move(name),
                      {s.rows() * runs.count(), load, store, last ? s.kept : s.t.tile});
}

// Merges pairs of runs from scratch `from`.
class MergeLaunch {
 public:
  MergeLaunch(const MergeSort& s, const Runs& runs, int from)
      : s_(s), runs_(runs), after_(s.After(runs)), scratch_(s.Scratch()), from_(from) {}

  Launch Emit(std::string name) {
    const auto merge = [&](Emission& m, const ir::Dims& at) {
      Merge(m, at[0], at[1] * s_.merged, [&](const Dim& position, const Keyed& v) {
        if (after_.count() > 1 || !FinishesAtOnce(s_.r))
          return scratch_.Store(m, 1 - from_, at[0] * after_.row + position, v);
        const Position place = Guard(m, position, s_.kept);
        IfInside(m.b, place.inside, [&] { FinishKeyed(m, s_.f, at[0], place.at, v.index); });
      });
    };
    return ForPlaces(s_.r, std::move(name), 64, {s_.rows(), after_.row / s_.merged}, merge);
  }

 private:
  using Store = absl::FunctionRef<void(const Dim& position, const Keyed& v)>;

  // The element at a position of the row, or the last one of the row.
  Keyed At(Emission& m, const Dim& row, Val position) {
    const auto last = runs_.row - 1;
    const Val safe = min(max(position, 0.0), static_cast<double>(last));
    return scratch_.Load(m, from_, row * runs_.row + m.e.Coordinate(safe, last));
  }

  // How many of the first `before` merged elements are of the first run.
  Val Split(Emission& m, const Dim& row, Val a, Val b, Val b_length, Val before) {
    const Vals low_high{max(before - b_length, 0.0),
                        min(before, static_cast<double>(runs_.length))};
    const int steps = std::bit_width(static_cast<uint64_t>(runs_.length));
    return m.b.For({m.b.Int(0), m.b.Int(steps), m.b.Int(1)}, low_high, [&](Val, const Vals& range) {
      const Val middle = (range[0] + range[1]) >> 1.0, more = range[0] < range[1];
      const Keyed x = At(m, row, a + middle), y = At(m, row, b + before - middle - 1.0);
      const Val taken = IsBefore(s_.f.order, x, y);
      return Vals{select(more & taken, middle + 1.0, range[0]),
                  select(more & ~taken, middle, range[1])};
    })[0];
  }

  void Merge(Emission& m, const Dim& row, const Dim& first, Store store) {
    const auto length = static_cast<double>(runs_.length);
    const Val a = m.e.Value(FloorDiv(first, after_.length) * (2 * runs_.length)), b = a + length;
    const Val end = min(b + length, static_cast<double>(runs_.row));
    const Val before = m.e.Value(Mod(first, after_.length)), b_length = max(end - b, 0.0);
    const Val split = Split(m, row, a, b, b_length, before);
    const Val i = a + split, j = b + before - split;
    const Keyed x = At(m, row, i), y = At(m, row, j);
    m.b.For({m.b.Int(0), m.b.Int(s_.merged), m.b.Int(1)}, {i, j, x.key, x.index, y.key, y.index},
            [&](Val n, const Vals& v) {
              const Keyed left{v[2], v[3]}, right{v[4], v[5]};
              const Val taken = (v[0] < b) & ((v[1] >= end) | IsBefore(s_.f.order, left, right));
              store(first + m.e.Coordinate(n, s_.merged - 1), Select(taken, left, right));
              const Val next_i = select(taken, v[0] + 1.0, v[0]);
              const Val next_j = select(taken, v[1], v[1] + 1.0);
              const Keyed next = At(m, row, select(taken, next_i, next_j));
              const Keyed l = Select(taken, next, left), r = Select(taken, right, next);
              return Vals{next_i, next_j, l.key, l.index, r.key, r.index};
            });
  }

  const MergeSort& s_;
  Runs runs_, after_;
  KeyedScratch scratch_;
  int from_;
};

Program Emit(const Region& r, const MergeForm& f, const SortTiles& t) {
  const MergeSort s(r, f, t);
  Program out = OneLaunch(SortTilesOf(s, fmt::format("{}_{}", f.k ? "top_k" : "sort", t.tile)));
  if (s.First().count() == 1) return out;
  Runs runs = s.First();
  int from = 0;
  for (; runs.count() > 1; runs = s.After(runs), from = 1 - from)
    out.launches.push_back(MergeLaunch(s, runs, from).Emit(fmt::format("{}_merge", out.kernel)));
  if (!FinishesAtOnce(r))
    out.launches.push_back(
        EmitKept(r, f, {from, runs.row, s.kept}, fmt::format("{}_finish", out.kernel)));
  out.scratch_bytes = s.Scratch().Bytes(out.launches.size() > 2 ? 2 : 1);
  return out;
}

}  // namespace sort
}  // namespace

const Schedule kSort =
    ScheduleOn<SortTiles, sort::FormOfSort, sort::Defaults, sort::Fits, sort::Emit>("sort");

}  // namespace forge::codegen
