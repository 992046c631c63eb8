// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/matmul_split.h"

namespace forge::codegen {
namespace {

using ir::Dim;
using ir::Dims;

// As many workgroups fill most devices, and parts shorter than this along k cost more to add up
// than they gain. No query tells how many workgroups a device runs at once.
constexpr int64_t kEnoughTiles = 32, kLeastPart = 128, kMostParts = 8;
// A workgroup has at most this many parts that are not whole tiles: its first and its last.
constexpr int64_t kSlots = 2;

}  // namespace

Tiling::Tiling(const Gemm& g, int64_t rows, int64_t columns, int64_t depth, int64_t workgroups)
    : g_(g),
      rows_(rows),
      columns_(columns),
      depth_(depth),
      workgroups_(workgroups),
      grid_{g.batch, CeilDiv(g.m, rows), CeilDiv(g.n, columns)} {}

bool Tiling::has_known_size() const { return (tiles() * steps()).is_constant(); }

int64_t Tiling::SuggestWorkgroups() const {
  if (!has_known_size()) return 0;
  int64_t parts = 1;
  while (parts < kMostParts && tiles().constant() * parts < kEnoughTiles &&
         g_.k.max() >= 2 * parts * std::max(kLeastPart, depth_))
    parts *= 2;
  return parts == 1 ? 0 : tiles().constant() * parts;
}

std::string Tiling::Text() const {
  return shared() ? fmt::format("_shared_by_{}", workgroups_) : "";
}

int64_t Tiling::scratch_bytes() const {
  return workgroups_ * kSlots * rows_ * columns_ * BitWidth(AccumulatorOf(g_.dtype).elem) / 8;
}

Verdict Tiling::Fits(const Region& r) const {
  if (!shared()) return Verdict::Yes();
  const Caps& caps = r.caps();
  const auto operands =
      static_cast<int64_t>(r.body().arguments().size() + r.body().results().size());
  if (has_known_size() && share().constant() % steps().constant() == 0)
    return Verdict::No("workgroups have whole tiles");
  if (may_be_whole() && operands + 1 > caps.max_operands) return Verdict::No("no room for scratch");
  if ((tiles() * steps()).min() < workgroups_) return Verdict::No("there are fewer steps to share");
  if ((tiles() * steps()).max() >= int64_t{1} << 30) return Verdict::No("too many steps to share");
  if (scratch_bytes() > std::min(kMostScratchBytes, caps.max_operand_bytes))
    return Verdict::No("parts need too much scratch");
  return Verdict::Yes();
}

bool Tiling::ends_with_tiles() const {
  return has_known_size() && steps().constant() % share().constant() == 0;
}

TilePart Tiling::PartAt(Emission& m, const Dim& tile) const {
  const Dims at = Unflatten(tile, grid_);
  TilePart part{.batch = at[0], .row = at[1], .column = at[2], .most = steps()};
  part.steps = m.b.Scalar(steps());
  return part;
}

void Tiling::ForParts(Emission& m, const Dim& workgroup,
                      absl::FunctionRef<void(const TilePart&)> body) const {
  if (!shared()) return body(PartAt(m, workgroup));
  Builder& b = m.b;
  const Dim begin = workgroup * share(), end = Min(begin + share(), tiles() * steps());
  const Dim most_tiles = ends_with_tiles() ? Dim(1) : CeilDiv(share(), steps()) + 1;
  b.For({b.Int(0), b.Scalar(most_tiles), b.Int(1)}, {}, [&](Val i, const Vals&) {
    const Dim number = m.e.Coordinate(i, LastIndex(most_tiles));
    const Dim tile = FloorDiv(begin, steps()) + number;
    const Dim first = Max(begin, tile * steps()), last = Min(end, (tile + 1) * steps());
    const Val count = m.e.Value(last) - m.e.Value(first);
    b.If(count > 0.0, [&] {
      TilePart part = PartAt(m, m.e.Coordinate(m.e.Value(tile), LastIndex(tiles())));
      part.first = m.e.Coordinate(m.e.Value(first - tile * steps()), LastIndex(steps()));
      part.is_whole = count == part.steps;
      part.steps = count;
      // The first part of a workgroup, and one that begins a tile.
      const Val later = select(m.e.Value(first) > m.e.Value(begin), b.Int(1), b.Int(0));
      part.slot = workgroup * kSlots + m.e.Coordinate(later, kSlots - 1);
      body(part);
      b.Barrier();  // shared memory is filled anew
    });
    return Vals{};
  });
}

Dim Tiling::PlaceOf(const Dim& slot, const Dim& row, const Dim& column, int lanes) const {
  return (slot * rows_ + row) * (columns_ / lanes) + FloorDiv(column, lanes);
}

void Tiling::Finish(Emission& m, const TilePart& part, const Dim& row, const Dim& column,
                    const Gemm::At& at, Val v) const {
  const int lanes = v.type().lanes;
  const auto finish = [&] {
    Gemm::At c = at;
    c.n = c.n + m.e.Lane(lanes);
    g_.FinishFromZero(m, c, v, lanes);
    return Vals{};
  };
  const auto keep = [&] {
    m.e.StoreScratch(0, PlaceOf(part.slot, row, column, lanes), v);
    return Vals{};
  };
  if (!part.is_whole)
    finish();
  else if (!may_be_whole())
    keep();
  else
    m.b.If(part.is_whole, finish, keep);
}

// What the parts of a tile add up to at one place.
Val Tiling::SumOf(Emission& m, const Dim& tile, const Dim& row, const Dim& column,
                  int lanes) const {
  Builder& b = m.b;
  const Type type = AccumulatorOf(g_.dtype).Lanes(lanes);
  const Dim begin = tile * steps();
  const Val first = m.e.Value(FloorDiv(begin, share()));
  const Val last = m.e.Value(FloorDiv(begin + steps() - 1, share()));
  return b.For({first, last + 1.0, b.Int(1)}, {b.Literal(type, 0)}, [&](Val i, const Vals& sum) {
    const Dim workgroup = m.e.Coordinate(i, workgroups_ - 1);
    const Val later = select(m.e.Value(begin) > m.e.Value(workgroup * share()), b.Int(1), b.Int(0));
    const Dim slot = workgroup * kSlots + m.e.Coordinate(later, kSlots - 1);
    return Vals{sum[0] + m.e.LoadScratch(0, type, PlaceOf(slot, row, column, lanes))};
  })[0];
}

void Tiling::AddUp(const Region& r, Program& out) const {
  if (!shared()) return;
  out.scratch_bytes = {scratch_bytes()};
  const int lanes = LanesFor(g_.n);
  const Dims space = {g_.batch, g_.m, FloorDiv(g_.n, lanes)};
  Emission m(r, out.kernel + "_add", {64, 1, 1});
  m.Guarded(m.Invocations(ir::Product(space)), [&](const Dim& index) {
    const Dims place = Unflatten(index, space);
    const Dim column = place[2] * lanes;
    const Dim tile =
        Flatten({place[0], FloorDiv(place[1], rows_), FloorDiv(column, columns_)}, grid_);
    const Dim begin = tile * steps();
    const auto add = [&] {
      const Val sum = SumOf(m, tile, Mod(place[1], rows_), Mod(column, columns_), lanes);
      g_.FinishFromZero(m, {place[0], place[1], column + m.e.Lane(lanes), 0}, sum, lanes);
    };
    // Other tiles have been finished by the workgroup that had them whole.
    m.b.If(m.e.Value(FloorDiv(begin, share())) < m.e.Value(FloorDiv(begin + steps() - 1, share())),
           add);
  });
  out.launches.push_back(std::move(m).Take());
}

}  // namespace forge::codegen
