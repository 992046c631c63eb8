// SPDX-License-Identifier: Apache-2.0
// Matrix product without shared memory or subgroups: a register tile to an invocation, which fits
// every device and any shape.
#include "codegen/schedules/gemm.h"
#include "codegen/schedules/list.h"

namespace forge::codegen {
namespace {

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
  return MatmulSimple{.workgroup = 64,
                      .rows = TileSize(g.m(), 4),
                      .columns = TileSize(g.n(), 4),
                      .depth = LanesFor(g.k)};
}

Verdict Fits(const Region& r, const Gemm& g, const MatmulSimple& t) {
  if (g.k.divisor() % t.depth != 0) return Verdict::No("the depth does not divide k");
  return WorkgroupFits(t.workgroup, r.caps());
}

// The tile of one invocation.
class Tile {
 public:
  Tile(Emission& m, const Gemm& g, const MatmulSimple& t)
      : m_(m), g_(g), t_(t), rows_{g.m(), t.rows}, columns_{g.n(), t.columns} {}
  Dims Grid() const { return {g_.batch, rows_.count(), columns_.count()}; }
  void Run(const Dim& at);

 private:
  Vals LoadB(const Dim& k);
  Vals Start();
  Vals Accumulate(const Dim& k, Vals sums);

  Emission& m_;
  const Gemm& g_;
  const MatmulSimple& t_;
  TiledAxis rows_, columns_;
  Dim batch_;
  std::vector<Position> row_, column_;
};

Vals Tile::LoadB(const Dim& k) {
  const Factor& b = g_.b;
  const int wide = columns_.exact() && t_.columns % b.lanes_along == 0 ? b.lanes_along : 1;
  if (wide == 1 && t_.depth > 1 && b.lanes_k == t_.depth)
    return b.LoadPlaces(m_, batch_, column_, k, t_.depth);
  return b.LoadSteps(m_, batch_, column_, k, t_.depth, wide);
}

Vals Tile::Start() {
  Vals sums;
  for (const Position& row : row_)
    sums.insert(sums.end(), column_.size(), g_.Start(m_, {batch_, row.at, column_[0].at}));
  return sums;
}

Vals Tile::Accumulate(const Dim& k, Vals sums) {
  const Vals a = g_.a.LoadPlaces(m_, batch_, row_, k, t_.depth), b = LoadB(k);
  const size_t rows = row_.size(), columns = column_.size();
  for (size_t s = 0; s < static_cast<size_t>(t_.depth); ++s)
    AddProducts(std::span(a).subspan(s * rows, rows), std::span(b).subspan(s * columns, columns),
                sums);
  return sums;
}

void Tile::Run(const Dim& at) {
  const Dims tile = Unflatten(at, Grid());
  batch_ = tile[0], row_ = rows_.All(m_, tile[1]), column_ = columns_.All(m_, tile[2]);
  const Vals sums = m_.Loop(FloorDiv(g_.k, t_.depth), Start(), [&](const Dim& i, Vals carried) {
    return Accumulate(i * t_.depth, std::move(carried));
  });
  for (size_t i = 0; i < row_.size(); ++i) {
    const auto part = std::span(sums).subspan(i * column_.size(), column_.size());
    IfInside(m_.b, row_[i].inside, [&] {
      FinishRow(m_, columns_, column_, part,
                [&](const Dim& n, Val v) { g_.Finish(m_, {batch_, row_[i].at, n}, v); });
    });
  }
}

Program Emit(const Region& r, const Gemm& g, const MatmulSimple& t) {
  Emission m(r, fmt::format("matmul_simple_{}x{}", t.rows, t.columns),
             {static_cast<uint32_t>(t.workgroup), 1, 1});
  Tile tile(m, g, t);
  m.Guarded(m.Invocations(ir::Product(tile.Grid())), [&](const Dim& at) { tile.Run(at); });
  return OneLaunch(std::move(m).Take());
}

}  // namespace

const Schedule kMatmulSimple =
    ScheduleOn<MatmulSimple, PlainGemmOf, Defaults, Fits, Emit>("matmul_simple");

}  // namespace forge::codegen
