// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/matmul_split.h"

namespace forge::codegen {
namespace {

using ir::Dim;
using ir::Dims;

// As many workgroups fill most devices, and parts shorter than this along k cost more to add up
// than they gain. No query tells how many workgroups a device runs at once.
constexpr int64_t kEnoughTiles = 32, kLeastPart = 128, kMostParts = 8;

}  // namespace

Tiling::Tiling(const Gemm& g, const Size& size)
    : g_(g), size_(size), grid_{g.batch, CeilDiv(g.m(), size.rows), CeilDiv(g.n(), size.columns)} {}

int64_t Tiling::SuggestWorkgroups() const {
  if (!has_known_size()) return 0;
  int64_t parts = 1;
  while (parts < kMostParts && tiles().constant() * parts < kEnoughTiles &&
         g_.k.max() >= 2 * parts * std::max(kLeastPart, size_.depth))
    parts *= 2;
  return parts == 1 ? 0 : tiles().constant() * parts;
}

std::string Tiling::Text() const {
  return (shared() ? fmt::format("_shared_by_{}", size_.workgroups) : "") +
         (size_.stages > 1 ? "_staged" : "");
}

int64_t Tiling::scratch_bytes() const {
  return size_.workgroups * slots() * size_.rows * size_.columns *
         BitWidth(AccumulatorOf(g_.dtype).elem) / 8;
}

// Each launch binds scratch beside its operands.
bool Tiling::BindsTooMany(const Region& r) const {
  std::vector<uint32_t> results;
  for (const ir::Function::Result& result : r.body().results()) results.push_back(result.value);
  const auto own = static_cast<int64_t>(results.size());
  const int64_t before = r.ArgumentsBehind(r.anchor()->in);
  const int64_t after = r.ArgumentsBehind(results) + own + (g_.start ? 1 : 0);
  const int64_t tiles = may_be_whole() ? r.operand_count() : before;
  return std::max(tiles, after) + 1 > r.caps().max_operands;
}

Verdict Tiling::SharingFits(const Region& r) const {
  const Dim all = tiles() * steps();
  if (all.min() < size_.workgroups) return Verdict::No("there are fewer steps to share");
  if (all.max() >= int64_t{1} << 30) return Verdict::No("too many steps to share");
  if (has_known_size() && share().constant() % steps().constant() == 0)
    return Verdict::No("workgroups have whole tiles");
  if (scratch_bytes() > std::min(kMostScratchBytes, r.caps().max_operand_bytes))
    return Verdict::No("parts need too much scratch");
  if (BindsTooMany(r)) return Verdict::No("no room for scratch");
  return Verdict::Yes();
}

Verdict Tiling::Fits(const Region& r) const {
  if (shared())
    if (Verdict v = SharingFits(r); !v) return v;
  if (size_.stages > 1 && g_.k.min() < 1) return Verdict::No("k may be empty");
  return Verdict::Yes();
}

int64_t Tiling::of_one_tile() const {
  if (!shared() || !has_known_size() || size_.workgroups % tiles().constant() != 0) return 0;
  return size_.workgroups / tiles().constant();
}

Dim Tiling::share() const {
  const int64_t parts = of_one_tile();
  return parts > 0 ? CeilDiv(steps(), parts) : CeilDiv(tiles() * steps(), size_.workgroups);
}

Dim Tiling::WorkgroupAt(const Dim& tile, const Dim& step) const {
  const int64_t parts = of_one_tile();
  return parts > 0 ? tile * parts + FloorDiv(step, share())
                   : FloorDiv(tile * steps() + step, share());
}

// The first one where the workgroup began within the tile, or with it.
Dim Tiling::SlotOf(Emission& m, const Dim& tile, const Dim& workgroup) const {
  if (slots() == 1) return workgroup;
  const Val is_later = m.e.Value(tile * steps()) > m.e.Value(workgroup * share());
  const Val later = select(is_later, m.b.Int(1), m.b.Int(0));
  return workgroup * slots() + m.e.Coordinate(later, slots() - 1);
}

TilePart Tiling::PartAt(const Dim& tile) const {
  const Dims at = Unflatten(tile, grid_);
  return {.batch = at[0], .row = at[1], .column = at[2], .last = LastIndex(steps())};
}

TilePart Tiling::OnlyPart(Emission& m, const Dim& workgroup) const {
  if (!shared()) {
    TilePart all = PartAt(workgroup);
    all.steps = m.b.Scalar(steps());
    return all;
  }
  const int64_t parts = of_one_tile();
  TilePart part = PartAt(FloorDiv(workgroup, parts));
  part.first = Mod(workgroup, parts) * share();
  part.steps = m.b.Scalar(share());
  part.last = parts * share().constant() - 1;
  part.is_whole = m.b.Literal(kBool, 0);
  part.slot = workgroup;
  return part;
}

void Tiling::ForParts(Emission& m, const Dim& workgroup,
                      absl::FunctionRef<void(const TilePart&)> body) const {
  if (!shared() || of_one_tile() > 0) return body(OnlyPart(m, workgroup));
  Builder& b = m.b;
  const Dim begin = workgroup * share(), end = Min(begin + share(), tiles() * steps());
  const Dim most = CeilDiv(share(), steps()) + 1;
  b.For({b.Int(0), b.Scalar(most), b.Int(1)}, {}, [&](Val i, const Vals&) {
    const Dim number = FloorDiv(begin, steps()) + m.e.Coordinate(i, LastIndex(most));
    const Dim first = Max(begin, number * steps()), last = Min(end, (number + 1) * steps());
    const Val count = m.e.Value(last) - m.e.Value(first);
    b.If(count > 0.0, [&] {
      const Dim tile = m.e.Coordinate(m.e.Value(number), LastIndex(tiles()));
      TilePart part = PartAt(tile);
      part.first = m.e.Coordinate(m.e.Value(first - number * steps()), LastIndex(steps()));
      part.steps = count;
      part.is_whole = may_be_whole() ? count == b.Scalar(steps()) : b.Literal(kBool, 0);
      part.slot = SlotOf(m, tile, workgroup);
      body(part);
      b.Barrier();  // shared memory is filled anew
    });
    return Vals{};
  });
}

void Tiling::Finish(Emission& m, TilePart part,
                    absl::FunctionRef<void(const TilePart&)> body) const {
  if (!part.is_whole) return body(part);
  const auto finish = [&] {
    body(part);
    return Vals{};
  };
  const auto keep = [&] {
    TilePart kept = part;
    kept.kept = true;
    body(kept);
    return Vals{};
  };
  m.b.If(part.is_whole, finish, keep);
}

Dim Tiling::PlaceOf(const Dim& slot, const Dim& row, const Dim& column, int lanes) const {
  return (slot * size_.rows + row) * (size_.columns / lanes) + FloorDiv(column, lanes);
}

void Tiling::Store(Emission& m, const TilePart& part, const Dim& row, const Dim& column, Val inside,
                   absl::FunctionRef<Val()> sums) const {
  const Position i = Guard(m, part.row * size_.rows + row, g_.m());
  const Position j = Guard(m, part.column * size_.columns + column, g_.n());
  IfInside(m.b, Both(Both(i.inside, j.inside), inside), [&] {
    Val v = sums();
    if (v.type().elem == DType::kU32) v = bitcast(v, DType::kI32);  // matrices of u8 are summed so
    if (part.kept)
      m.e.StoreScratch(0, PlaceOf(part.slot, row, column, v.type().lanes), v);
    else
      g_.FinishFromZero(m, {part.batch, i.at, j.at}, v);
  });
}

// What the parts of a tile add up to at one place; `others`: workgroups beside the first one.
Val Tiling::SumOf(Emission& m, const Dim& tile, const Dim& others, const Dim& row,
                  const Dim& column, int lanes) const {
  Builder& b = m.b;
  const Type type = AccumulatorOf(g_.dtype).Lanes(lanes);
  const auto unroll = others.max() < kMostParts ? Builder::Range::kWhole : Builder::Range::kNot;
  const Vals none = {b.Literal(type, 0)};
  return b.For({b.Int(0), m.e.Value(others + 1), b.Int(1), unroll}, none, [&](Val i, Vals sum) {
    const Dim workgroup = WorkgroupAt(tile, 0) + m.e.Coordinate(i, others.max());
    const Dim place = PlaceOf(SlotOf(m, tile, workgroup), row, column, lanes);
    return Vals{sum[0] + m.e.LoadScratch(0, type, place)};
  })[0];
}

void Tiling::AddUp(const Region& r, Program& out) const {
  if (!shared()) return;
  out.scratch_bytes = {scratch_bytes()};
  const int lanes = LanesFor(g_.n());
  const Dims space = {g_.batch, g_.m(), FloorDiv(g_.n(), lanes)};
  const auto add_up = [&](Emission& m, const Dims& place) {
    const Dim column = place[2] * lanes;
    const Dim tile =
        Flatten({place[0], FloorDiv(place[1], size_.rows), FloorDiv(column, size_.columns)}, grid_);
    const Dim others = WorkgroupAt(tile, steps() - 1) - WorkgroupAt(tile, 0);
    const auto add = [&] {
      const Val sum =
          SumOf(m, tile, others, Mod(place[1], size_.rows), Mod(column, size_.columns), lanes);
      g_.FinishFromZero(m, {place[0], place[1], column}, sum);
    };
    // Other tiles have been finished by the workgroup that had them whole.
    IfInside(m.b, others.min() > 0 ? Val{} : m.e.Value(others) > 0.0, add);
  };
  out.launches.push_back(ForPlaces(r, out.kernel + "_add", 64, space, add_up));
}

}  // namespace forge::codegen
