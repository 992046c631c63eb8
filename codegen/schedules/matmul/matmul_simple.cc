// SPDX-License-Identifier: Apache-2.0
// Matrix product without shared memory or subgroups: a register tile to an invocation, which fits
// every device and any shape.
#include <algorithm>

#include "codegen/schedules/matmul/gemm.h"

namespace forge::codegen {
namespace {
namespace matmul_simple {

using ir::Dim;
using ir::Dims;

struct MatmulSimple {
  int64_t workgroup = 64;
  int64_t rows = 4, columns = 4;  // of C, to an invocation
  int64_t depth = 1;              // steps of k at once
  static constexpr Field kFields[] = {
      FieldOf<&MatmulSimple::workgroup>("workgroup", "Invocations in a workgroup.", "32|64|128"),
      FieldOf<&MatmulSimple::rows>("rows", "Rows of C to an invocation.", "1|2|4|8"),
      FieldOf<&MatmulSimple::columns>("columns", "Columns of C to an invocation.", "1|2|4|8"),
      FieldOf<&MatmulSimple::depth>("depth", "Steps of k at once.", "1|2|4")};
};

MatmulSimple Defaults(const Region&, const Gemm& g) {
  return MatmulSimple{
      .rows = TileSize(g.m(), 4), .columns = TileSize(g.n(), 4), .depth = LanesFor(g.k)};
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
  return WorkgroupFits(t.workgroup, r.caps());
}

// The tile of one invocation.
class Tile {
 public:
  // place: batch, and tile along each axis
  Tile(Emission& m, const Gemm& g, const MatmulSimple& t, const Dims& place)
      : m_(m),
        g_(g),
        depth_(t.depth),
        columns_{g.n(), t.columns},
        batch_(place[0]),
        row_(TiledAxis{g.m(), t.rows}.All(m, place[1])),
        column_(columns_.All(m, place[2])) {}
  void Run();

 private:
  Vals LoadB(const Dim& k);
  Vals Accumulate(const Dim& k, Vals sums);

  Emission& m_;
  const Gemm& g_;
  const int64_t depth_;
  const TiledAxis columns_;
  const Dim batch_;
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
    sums.insert(sums.end(), column_.size(), g_.Start(m_, {batch_, row.at, column_[0].at}));
  sums = m_.Loop(FloorDiv(g_.k, depth_), std::move(sums), [&](const Dim& i, Vals carried) {
    return Accumulate(i * depth_, std::move(carried));
  });
  auto rest = std::span(sums);
  for (const Position& row : row_) {
    const auto own = rest.first(column_.size());
    IfInside(m_.b, row.inside, [&] {
      if (m_.region.reduction() == nullptr)
        return FinishRow(m_, columns_, column_, own,
                         [&](const Dim& n, Val v) { g_.Finish(m_, {batch_, row.at, n}, v); });
      const RowFolding folding(m_, g_);
      folding.Finish({batch_, row.at, 0}, folding.Fold({batch_, row.at, 0}, column_, own));
    });
    rest = rest.subspan(column_.size());
  }
}

Program Emit(const Region& r, const Gemm& g, const MatmulSimple& given) {
  const MatmulSimple t = WithWholeRows(r, g, given);
  const Dims space = {g.batch, CeilDiv(g.m(), t.rows), CeilDiv(g.n(), t.columns)};
  return OneLaunch(ForPlaces(r, fmt::format("matmul_simple_{}x{}", t.rows, t.columns), t.workgroup,
                             space,
                             [&](Emission& m, const Dims& place) { Tile(m, g, t, place).Run(); }));
}

}  // namespace matmul_simple
}  // namespace

const Schedule kMatmulSimple =
    Reducing(ScheduleOn<matmul_simple::MatmulSimple, PlainGemmOf, matmul_simple::Defaults,
                        matmul_simple::Fits, matmul_simple::Emit>("matmul_simple"));

}  // namespace forge::codegen
