// SPDX-License-Identifier: Apache-2.0
// Matrix product without shared memory or subgroups: a register tile to an invocation, which fits
// every device and any shape. Long sums of few tiles are split along k.
#include <algorithm>

#include "codegen/schedules/matmul/gemm.h"
#include "codegen/schedules/split.h"

namespace forge::codegen {
namespace {
namespace matmul_simple {

using ir::Dim;
using ir::Dims;

struct MatmulSimple {
  int64_t workgroup = 64;
  int64_t rows = 4, columns = 4;  // of C, to an invocation
  int64_t depth = 1;              // steps of k at once
  int64_t parts = 1;              // of k, for other invocations
  static constexpr Field kFields[] = {
      FieldOf<&MatmulSimple::workgroup>("workgroup", "Invocations in a workgroup.", "32|64|128"),
      FieldOf<&MatmulSimple::rows>("rows", "Rows of C to an invocation.", "1|2|4|8"),
      FieldOf<&MatmulSimple::columns>("columns", "Columns of C to an invocation.", "1|2|4|8"),
      FieldOf<&MatmulSimple::depth>("depth", "Steps of k at once.", "1|2|4"),
      FieldOf<&MatmulSimple::parts>("parts", "Of k, which a second launch adds up.",
                                    "1|4|16|64|256")};
};

int64_t ScratchBytes(const Gemm& g, int64_t parts) {
  const Dim all = g.batch * g.m() * g.n() * (parts * BitWidth(AccumulatorOf(g.dtype).elem) / 8);
  return all.max();
}

Verdict CanSplit(const Region& r, const Gemm& g, int64_t parts) {
  if (parts > 1 && (r.reduction() != nullptr || r.norm() != nullptr))
    return Verdict::No("the launches of parts know no rows");
  return PartsFit(r, parts, ScratchBytes(g, parts));
}

MatmulSimple Defaults(const Region& r, const Gemm& g) {
  MatmulSimple t{.rows = TileSize(g.m(), 4), .columns = TileSize(g.n(), 4), .depth = LanesFor(g.k)};
  const Dim tiles = g.batch * CeilDiv(g.m(), t.rows) * CeilDiv(g.n(), t.columns);
  t.parts = kSplitOutputs.PartsOf(tiles.max(), g.k.min() / t.depth);
  if (!CanSplit(r, g, t.parts)) t.parts = 1;
  return t;
}

// Rows that are reduced are whole, and fewer, so that their sums fit registers.
MatmulSimple WithWholeRows(const Region& r, const Gemm& g, MatmulSimple t) {
  if (r.reduction() == nullptr) return t;
  t.columns = g.n().max();
  t.rows = std::clamp<int64_t>((r.caps().few_registers() ? 16 : 32) / t.columns, 1, t.rows);
  return t;
}

Verdict Fits(const Region& r, const Gemm& g, const MatmulSimple& t) {
  if (Verdict v = HoldsRows(r, g, g.n().max()); !v) return v;
  if (r.reduction() != nullptr && !HoldsShortRows(r, g)) return Verdict::No("rows are long");
  if (g.k.divisor() % t.depth != 0) return Verdict::No("the depth does not divide k");
  if (Verdict v = CanSplit(r, g, t.parts); !v) return v;
  return WorkgroupFits(t.workgroup, r.caps());
}

// The tile of one invocation.
class Tile {
 public:
  // place: part of k, batch, and tile along each axis
  Tile(Emission& m, const Gemm& g, const MatmulSimple& t, const Dims& place)
      : m_(m),
        g_(g),
        depth_(t.depth),
        parts_(t.parts),
        columns_{g.n(), t.columns},
        part_(place[0]),
        batch_(place[1]),
        row_(TiledAxis{g.m(), t.rows}.All(m, place[2])),
        column_(columns_.All(m, place[3])) {}
  void Run();

 private:
  Vals LoadB(const Dim& k);
  Vals Accumulate(const Dim& k, Vals sums);
  // Of a part, which begins with 0 and goes to scratch memory; or of the whole.
  Val Start(const Gemm::At& at) const {
    return parts_ > 1 ? m_.b.Literal(AccumulatorOf(g_.dtype), 0) : g_.Start(m_, at);
  }
  void Finish(const Gemm::At& at, Val sums) const;

  Emission& m_;
  const Gemm& g_;
  const int64_t depth_, parts_;
  const TiledAxis columns_;
  const Dim part_, batch_;
  const std::vector<Position> row_, column_;
};

Vals Tile::LoadB(const Dim& k) {
  const Factor& b = g_.b;
  const int wide = columns_.exact() && columns_.size % b.lanes_along == 0 ? b.lanes_along : 1;
  if (wide == 1 && depth_ > 1 && b.lanes_k == depth_)
    return b.LoadPlaces(m_, batch_, column_, k, depth_);
  return b.LoadSteps(m_, batch_, column_, k, depth_, wide);
}

Vals Tile::Accumulate(const Dim& k, Vals sums) {
  const Vals a = g_.a.LoadPlaces(m_, batch_, row_, k, depth_), b = LoadB(k);
  const size_t rows = row_.size(), columns = column_.size();
  for (size_t s = 0; s < static_cast<size_t>(depth_); ++s)
    AddProducts(std::span(a).subspan(s * rows, rows), std::span(b).subspan(s * columns, columns),
                sums);
  return sums;
}

void Tile::Run() {
  Vals sums;
  for (const Position& row : row_)
    sums.insert(sums.end(), column_.size(), Start({batch_, row.at, column_[0].at}));
  const Dim steps = FloorDiv(g_.k, depth_);
  const AxisPart part(steps, part_, parts_);
  sums = m_.b.For({m_.e.Value(part.begin), m_.e.Value(part.end), m_.b.Int(1)}, std::move(sums),
                  [&](Val i, Vals carried) {
                    return Accumulate(m_.e.Coordinate(i, LastIndex(steps)) * depth_,
                                      std::move(carried));
                  });
  auto rest = std::span(sums);
  for (const Position& row : row_) {
    const auto own = rest.first(column_.size());
    IfInside(m_.b, row.inside, [&] {
      if (m_.region.reduction() == nullptr)
        return FinishRow(m_, columns_, column_, own,
                         [&](const Dim& n, Val v) { Finish({batch_, row.at, n}, v); });
      const RowFolding folding(m_, g_);
      folding.Finish({batch_, row.at, 0}, folding.Fold({batch_, row.at, 0}, column_, own));
    });
    rest = rest.subspan(column_.size());
  }
}

// Where a part's sum lies in scratch memory.
Dim PlaceOf(const Gemm& g, const Dim& part, const Gemm::At& at) {
  return ((part * g.batch + at.batch) * g.m() + at.m) * g.n() + at.n;
}

void Tile::Finish(const Gemm::At& at, Val sums) const {
  if (parts_ == 1) return g_.Finish(m_, at, sums);
  const int lanes = sums.type().lanes;
  for (int i = 0; i < lanes; ++i)
    m_.e.StoreScratch(0, PlaceOf(g_, part_, at) + i, lanes > 1 ? m_.b.Extract(sums, i) : sums);
}

Launch EmitAddition(const Region& r, const Gemm& g, const MatmulSimple& t, std::string name) {
  return ForPlaces(r, std::move(name), t.workgroup, {g.batch, g.m(), g.n()},
                   [&](Emission& m, const Dims& place) {
                     const Gemm::At at{place[0], place[1], place[2]};
                     const Type type = AccumulatorOf(g.dtype);
                     const Vals sum =
                         m.Loop(t.parts, {m.b.Literal(type, 0)}, [&](const Dim& i, Vals carried) {
                           return Vals{carried[0] + m.e.LoadScratch(0, type, PlaceOf(g, i, at))};
                         });
                     g.FinishFromZero(m, at, sum[0]);
                   });
}

Program Emit(const Region& r, const Gemm& g, const MatmulSimple& given) {
  const MatmulSimple t = WithWholeRows(r, g, given);
  const Dims space = {t.parts, g.batch, CeilDiv(g.m(), t.rows), CeilDiv(g.n(), t.columns)};
  Launch tiles = ForPlaces(
      r, fmt::format("matmul_simple_{}x{}{}", t.rows, t.columns, SplitText(t.parts)), t.workgroup,
      space, [&](Emission& m, const Dims& place) { Tile(m, g, t, place).Run(); });
  if (t.parts == 1) return OneLaunch(std::move(tiles));
  return SplitProgram(std::move(tiles), ScratchBytes(g, t.parts), "_add",
                      [&](std::string name) { return EmitAddition(r, g, t, std::move(name)); });
}

}  // namespace matmul_simple
}  // namespace

const Schedule kMatmulSimple =
    Reducing(ScheduleOn<matmul_simple::MatmulSimple, PlainGemmOf, matmul_simple::Defaults,
                        matmul_simple::Fits, matmul_simple::Emit>("matmul_simple"));

}  // namespace forge::codegen
