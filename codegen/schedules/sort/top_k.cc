// SPDX-License-Identifier: Apache-2.0
// The first elements of sorted rows: each tile is sorted in shared memory, and what may be among
// the first k of the row goes to the next launch, until one tile holds it all.
#include "ir/ops/sorting/top_k.h"

#include "codegen/schedules/sort/tile.h"

namespace forge::codegen {
namespace {
namespace top_k {

using ir::Dim;

struct TopForm : SortForm {
  int64_t k = 0;
};

std::optional<TopForm> FormOfTop(const Region& r) {
  const auto* op = r.AnchorAs<ir::TopK>();
  if (op == nullptr) return std::nullopt;
  return TopForm{SortFormOf(r, op->axis, op->largest), op->k};
}

SortTiles Defaults(const Region& r, const TopForm& f) { return DefaultSortTiles(r, f, kLargeTile); }

int64_t TilesOf(int64_t elements, const SortTiles& t) { return (elements + t.tile - 1) / t.tile; }

Verdict Fits(const Region& r, const TopForm& f, const SortTiles& t) {
  if (r.caps().runs_on_cpu) return Verdict::No("merging runs is faster on this device");
  if (Verdict v = SortTilesFit(r, f, t); !v) return v;
  const Dim& length = f.space.length();
  if (length.max() <= t.tile) return Verdict::Yes();
  if (2 * f.k > t.tile) return Verdict::No("k is more than half a tile");
  if (!length.is_constant() || !f.space.rows().is_constant()) return Verdict::Yes();
  const int64_t kept = f.space.rows().constant() * TilesOf(f.length(), t) * f.k;
  const KeyedScratch scratch{f.order, kept};
  if (kept > kMostElements || scratch.Bytes(1)[0] > r.caps().max_operand_bytes)
    return Verdict::No("rows need too much scratch");
  return ScratchBinds(r);
}

Program Emit(const Region& r, const TopForm& f, const SortTiles& t) {
  const int64_t rows = f.space.rows().constant();
  int64_t length = f.length();  // of what is left of a row
  const KeyedScratch scratch{f.order, rows * TilesOf(length, t) * f.k};
  Program out{.kernel = fmt::format("top_{}_of_{}", f.k, t.tile)};
  for (int level = 0;; ++level) {
    const int64_t tiles = TilesOf(length, t), before = length;
    const auto load = [&](Emission& m, const Dim& tile, const Dim& position) {
      const Dim row = FloorDiv(tile, tiles), at = Mod(tile, tiles) * t.tile + position;
      if (level == 0) return LoadKeyed(m, f, row, at);
      const Position place = Guard(m, at, before);
      const Keyed kept = scratch.Load(m, (level - 1) % 2, row * before + place.at);
      if (!place.inside) return kept;
      return Select(place.inside, kept, {f.order.LastKey(m.b), m.b.Int(INT32_MAX)});
    };
    const auto store = [&](Emission& m, const Dim& tile, const Dim& position, const Keyed& v) {
      if (tiles == 1 && (level == 0 || FinishesAtOnce(r)))
        return FinishKeyed(m, f, tile, position, v.index);
      scratch.Store(m, level % 2, tile * f.k + position, v);
    };
    const std::string name = level == 0 ? out.kernel : fmt::format("{}_again", out.kernel);
    out.launches.push_back(EmitTileSort(r, f.order, t, name, {rows * tiles, load, store, f.k}));
    if (tiles == 1 && level > 0 && !FinishesAtOnce(r))
      out.launches.push_back(
          EmitKept(r, f, {level % 2, f.k, f.k}, fmt::format("{}_finish", out.kernel)));
    if (tiles == 1) break;
    length = tiles * f.k;
  }
  if (out.launches.size() > 1) out.scratch_bytes = scratch.Bytes(out.launches.size() > 2 ? 2 : 1);
  return out;
}

}  // namespace top_k
}  // namespace

const Schedule kTopK =
    ScheduleOn<SortTiles, top_k::FormOfTop, top_k::Defaults, top_k::Fits, top_k::Emit>("top_k");

}  // namespace forge::codegen
