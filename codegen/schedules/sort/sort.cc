// SPDX-License-Identifier: Apache-2.0
// Sorting: rows that fit shared memory in one launch. Of longer ones each tile is sorted, then
// sorted runs are merged in pairs, a launch for each doubling. An invocation finds where its part
// of a merged run begins by a binary search.
#include "ir/ops/sorting/sort.h"

#include <bit>

#include "codegen/schedules/sort/tile.h"

namespace forge::codegen {
namespace {

using ir::Dim;

constexpr int64_t kMerged = 8;  // elements that an invocation merges; tiles are multiples of it

std::optional<SortForm> FormOfSort(const Region& r) {
  const auto* op = r.AnchorAs<ir::Sort>();
  if (op == nullptr) return std::nullopt;
  return SortFormOf(r, op->axis, op->descending);
}

// Of the sorted tiles of all rows.
struct Runs {
  Runs(const SortForm& f, const SortTiles& t)
      : tiles((f.length() + t.tile - 1) / t.tile),
        padded(tiles * t.tile),
        rows(f.space.rows().constant()),
        scratch{f.order, rows * padded} {}
  int64_t tiles, padded, rows;  // of a row
  KeyedScratch scratch;
  Dim At(const Dim& row, const Dim& position) const { return row * padded + position; }
};

Verdict Fits(const Region& r, const SortForm& f, const SortTiles& t) {
  if (Verdict v = SortTilesFit(r, f, t); !v) return v;
  const Dim& length = f.space.length();
  if (length.max() <= t.tile || !length.is_constant() || !f.space.rows().is_constant())
    return Verdict::Yes();
  const Runs runs(f, t);
  if (runs.scratch.elements > kMostElements ||
      runs.scratch.Bytes(1)[0] > r.caps().max_operand_bytes)
    return Verdict::No("rows need too much scratch");
  if (std::max<int64_t>(r.bindings() + 2, 4) > r.caps().max_operands)
    return Verdict::No("no room for scratch");
  return Verdict::Yes();
}

// The sorted tiles of all rows: in scratch, or as results where a tile is a row.
Launch SortTilesOf(const Region& r, const SortForm& f, const SortTiles& t, std::string name) {
  const Runs runs(f, t);
  const auto load = [&](Emission& m, const Dim& tile, const Dim& position) {
    return LoadKeyed(m, f, FloorDiv(tile, runs.tiles), Mod(tile, runs.tiles) * t.tile + position);
  };
  const auto store = [&](Emission& m, const Dim& tile, const Dim& position, const Keyed& v) {
    if (runs.tiles == 1) return FinishKeyed(m, f, tile, position, v.index);
    runs.scratch.Store(m, 0, tile * t.tile + position, v);
  };
  return EmitTileSort(r, f.order, t, std::move(name),
                      {runs.rows * runs.tiles, load, store, runs.tiles == 1 ? f.length() : t.tile});
}

// Merges pairs of runs of `length` elements from scratch `from`.
class MergeLaunch {
 public:
  MergeLaunch(const Region& r, const SortForm& f, const Runs& runs, int64_t length, int from)
      : r_(r), f_(f), runs_(runs), length_(length), from_(from) {}

  Launch Emit(std::string name) {
    const bool last = 2 * length_ >= runs_.padded;
    return ForPlaces(r_, std::move(name), 64, {runs_.rows, runs_.padded / kMerged},
                     [&](Emission& m, const ir::Dims& at) {
                       const Dim first = at[1] * kMerged;
                       Merge(m, at[0], first, [&](int64_t i, const Keyed& v) {
                         const Dim position = first + i;
                         if (!last)
                           return runs_.scratch.Store(m, 1 - from_, runs_.At(at[0], position), v);
                         const Position place = Guard(m, position, f_.space.length());
                         IfInside(m.b, place.inside,
                                  [&] { FinishKeyed(m, f_, at[0], place.at, v.index); });
                       });
                     });
  }

 private:
  using Store = absl::FunctionRef<void(int64_t i, const Keyed& v)>;

  // The element at a position of the row, or the last one of the row.
  Keyed At(Emission& m, const Dim& row, Val position) {
    const auto last = runs_.padded - 1;
    const Val safe = min(max(position, 0.0), static_cast<double>(last));
    return runs_.scratch.Load(m, from_, runs_.At(row, m.e.Coordinate(safe, last)));
  }

  // How many of the first `before` merged elements are of the first run.
  Val Split(Emission& m, const Dim& row, Val a, Val b, Val b_length, Val before) {
    const Vals low_high{max(before - b_length, 0.0), min(before, static_cast<double>(length_))};
    const int steps = std::bit_width(static_cast<uint64_t>(length_));
    return m.b.For({m.b.Int(0), m.b.Int(steps), m.b.Int(1)}, low_high, [&](Val, const Vals& range) {
      const Val middle = (range[0] + range[1]) >> 1.0, more = range[0] < range[1];
      const Keyed x = At(m, row, a + middle), y = At(m, row, b + before - middle - 1.0);
      const Val taken = IsBefore(f_.order, x, y);
      return Vals{select(more & taken, middle + 1.0, range[0]),
                  select(more & ~taken, middle, range[1])};
    })[0];
  }

  void Merge(Emission& m, const Dim& row, const Dim& first, Store store) {
    const Dim base = FloorDiv(first, 2 * length_) * (2 * length_);
    const Val a = m.e.Value(base), b = a + static_cast<double>(length_);
    const Val end = min(b + static_cast<double>(length_), static_cast<double>(runs_.padded));
    const Val before = m.e.Value(first - base), b_length = max(end - b, 0.0);
    const Val split = Split(m, row, a, b, b_length, before);
    Val i = a + split, j = b + before - split;
    Keyed x = At(m, row, i), y = At(m, row, j);
    for (int64_t n = 0; n < kMerged; ++n) {
      const Val taken = (i < b) & ((j >= end) | IsBefore(f_.order, x, y));
      store(n, Select(taken, x, y));
      if (n + 1 == kMerged) break;
      i = select(taken, i + 1.0, i), j = select(taken, j, j + 1.0);
      const Keyed next = At(m, row, select(taken, i, j));
      x = Select(taken, next, x), y = Select(taken, y, next);
    }
  }

  const Region& r_;
  const SortForm& f_;
  const Runs& runs_;
  int64_t length_;
  int from_;
};

Program Emit(const Region& r, const SortForm& f, const SortTiles& t) {
  const Runs runs(f, t);
  Program out = OneLaunch(SortTilesOf(r, f, t, fmt::format("sort_{}", t.tile)));
  if (runs.tiles > 1) out.scratch_bytes = runs.scratch.Bytes(runs.tiles > 2 ? 2 : 1);
  int from = 0;
  for (int64_t length = t.tile; length < runs.padded; length *= 2, from = 1 - from)
    out.launches.push_back(
        MergeLaunch(r, f, runs, length, from).Emit(fmt::format("{}_merge", out.kernel)));
  return out;
}

}  // namespace

const Schedule kSort = ScheduleOn<SortTiles, FormOfSort, DefaultSortTiles, Fits, Emit>("sort");

}  // namespace forge::codegen
