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

bool Takes(const Region& r) { return IsPlainGemm(r); }

MatmulSimple Defaults(const Region& r) {
  const Gemm g = *GemmOf(r);
  return MatmulSimple{.workgroup = 64,
                      .rows = TileSize(g.m, 4),
                      .columns = TileSize(g.n, 4),
                      .depth = LanesFor(g.k)};
}

Verdict Fits(const Region& r, const MatmulSimple& t) {
  if (GemmOf(r)->k.divisor() % t.depth != 0) return Verdict::No("the depth does not divide k");
  return WorkgroupFits(t.workgroup, r.caps());
}

// The tile of one invocation.
class Tile {
 public:
  Tile(Emission& m, const Gemm& g, const MatmulSimple& t)
      : m_(m), g_(g), t_(t), rows_{g.m, t.rows}, columns_{g.n, t.columns} {}
  Dim count() const { return g_.batch * rows_.count() * columns_.count(); }
  void Run(const Dim& at);

 private:
  Gemm::At At(size_t i, size_t j, const Dim& k) const {
    return {batch_, row_[i].at, column_[j].at, k};
  }
  // Values [i][step] of A and [step][j] of B from k on.
  Vals LoadA(const Dim& k);
  Vals LoadB(const Dim& k);
  Vals Start();
  Vals Accumulate(const Dim& k, Vals sums);
  void FinishRow(size_t i, std::span<const Val> sums);

  Emission& m_;
  const Gemm& g_;
  const MatmulSimple& t_;
  TiledAxis rows_, columns_;
  Dim batch_;
  std::vector<Position> row_, column_;
};

Vals Tile::LoadA(const Dim& k) {
  const int depth = static_cast<int>(t_.depth);
  Vals out;
  for (size_t i = 0; i < row_.size(); ++i) {
    if (g_.a_lanes_k == depth) {
      Unpack(g_.A(m_, At(i, 0, k + m_.e.Lane(depth)), depth), out);
    } else {
      for (int s = 0; s < depth; ++s) out.push_back(g_.A(m_, At(i, 0, k + s)));
    }
  }
  return out;
}

Vals Tile::LoadB(const Dim& k) {
  const size_t depth = static_cast<size_t>(t_.depth), n = column_.size();
  const int wide = columns_.exact() && t_.columns % g_.b_lanes_n == 0 ? g_.b_lanes_n : 1;
  Vals out;
  if (wide == 1 && t_.depth > 1 && g_.b_lanes_k == t_.depth) {  // columns lie along k
    out.resize(depth * n);
    for (size_t j = 0; j < n; ++j) {
      Vals column;
      const int lanes = static_cast<int>(t_.depth);
      Unpack(g_.B(m_, At(0, j, k + m_.e.Lane(lanes)), lanes), column);
      for (size_t s = 0; s < depth; ++s) out[s * n + j] = column[s];
    }
    return out;
  }
  for (size_t s = 0; s < depth; ++s)
    for (size_t j = 0; j < n; j += static_cast<size_t>(wide)) {
      Gemm::At at = At(0, j, k + static_cast<int64_t>(s));
      at.n = at.n + m_.e.Lane(wide);
      Unpack(g_.B(m_, at, wide), out);
    }
  return out;
}

Vals Tile::Start() {
  Vals sums;
  for (size_t i = 0; i < row_.size(); ++i) {
    Val first = g_.Start(m_, At(i, 0, 0));
    sums.insert(sums.end(), column_.size(), first);
  }
  return sums;
}

Vals Tile::Accumulate(const Dim& k, Vals sums) {
  const Vals a = LoadA(k), b = LoadB(k);
  const size_t depth = static_cast<size_t>(t_.depth), n = column_.size();
  for (size_t s = 0; s < depth; ++s)
    for (size_t i = 0; i < row_.size(); ++i)
      for (size_t j = 0; j < n; ++j) {
        Val& sum = sums[i * n + j];
        sum = fma(a[i * depth + s], b[s * n + j], sum);
      }
  return sums;
}

void Tile::FinishRow(size_t i, std::span<const Val> sums) {
  const int lanes = columns_.exact() ? LanesFor(t_.columns) : 1;
  for (size_t j = 0; j < sums.size(); j += static_cast<size_t>(lanes)) {
    Gemm::At at = At(i, j, 0);
    if (lanes > 1) {
      at.n = at.n + m_.e.Lane(lanes);
      const auto part = sums.subspan(j, static_cast<size_t>(lanes));
      g_.Finish(m_, at, m_.b.Pack(sums[j].type().Lanes(lanes), part), lanes);
    } else {
      IfInside(m_.b, column_[j].inside, [&] { g_.Finish(m_, at, sums[j]); });
    }
  }
}

void Tile::Run(const Dim& at) {
  const Dims tile = Unflatten(at, {g_.batch, rows_.count(), columns_.count()});
  batch_ = tile[0];
  for (int64_t i = 0; i < t_.rows; ++i) row_.push_back(rows_.At(m_, tile[1], i));
  for (int64_t j = 0; j < t_.columns; ++j) column_.push_back(columns_.At(m_, tile[2], j));
  Builder& b = m_.b;
  const Dim steps = FloorDiv(g_.k, t_.depth);
  const Vals sums = b.For({b.Int(0), b.Scalar(steps), b.Int(1)}, Start(), [&](Val i, Vals carried) {
    return Accumulate(m_.e.Coordinate(i, LastIndex(steps)) * t_.depth, std::move(carried));
  });
  for (size_t i = 0; i < row_.size(); ++i) {
    const auto part = std::span(sums).subspan(i * column_.size(), column_.size());
    IfInside(b, row_[i].inside, [&] { FinishRow(i, part); });
  }
}

Program Emit(const Region& r, const MatmulSimple& t) {
  const Gemm g = *GemmOf(r);
  Emission m(r, fmt::format("matmul_simple_{}x{}", t.rows, t.columns),
             {static_cast<uint32_t>(t.workgroup), 1, 1});
  Tile tile(m, g, t);
  m.Guarded(m.Invocations(tile.count()), [&](const Dim& at) { tile.Run(at); });
  return OneLaunch(std::move(m).Take());
}

}  // namespace

const Schedule kMatmulSimple =
    ScheduleOf<MatmulSimple, Takes, Defaults, Fits, Emit>("matmul_simple");

}  // namespace forge::codegen
