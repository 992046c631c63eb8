// SPDX-License-Identifier: Apache-2.0
// Products of a few rows with a large matrix, which are over when the matrix has been read once.
// Neighbouring invocations read neighbouring elements: along columns of C where B's rows are
// contiguous, along k where its columns are.
#include <algorithm>
#include <bit>

#include "codegen/schedules/matmul/gemm.h"
#include "codegen/schedules/workgroup.h"

namespace forge::codegen {
namespace {

using ir::Dim;
using ir::Dims;

constexpr int64_t kMostRows = 4;  // of C
constexpr int64_t kLeastColumns = 64, kLeastDepth = 64;

// Is `g` such a product, with all the rows of C known?
Verdict IsFlat(const Gemm& g) {
  if (!g.m().is_constant() || g.m().max() > kMostRows) return Verdict::No("C has many rows");
  if (g.n().min() < kLeastColumns || g.k.min() < kLeastDepth)
    return Verdict::No("the matrix is small");
  return Verdict::Yes();
}

// ---- B's rows are contiguous --------------------------------------------------------------------

struct MatmulColumns {
  int64_t lanes = 32;   // invocations side by side
  int64_t parts = 4;    // of k, each summed by other invocations of the workgroup
  int64_t vectors = 1;  // of columns, to an invocation, `lanes` vectors apart
  int64_t depth = 1;    // steps of k at once
  static constexpr Field kFields[] = {
      FieldOf<&MatmulColumns::lanes>("lanes", "Invocations side by side.", "8|16|32|64"),
      FieldOf<&MatmulColumns::parts>("parts", "Parts of k in a workgroup.", "1|2|4|8"),
      FieldOf<&MatmulColumns::vectors>("vectors", "Vectors of columns.", "1|2|4|8|16|32"),
      FieldOf<&MatmulColumns::depth>("depth", "Steps of k at once.", "1|2")};
};

MatmulColumns ColumnsDefaults(const Region& r, const Gemm& g) {
  if (r.caps().runs_on_cpu) {
    const int64_t lanes = std::clamp<int64_t>(r.caps().subgroup_size, 8, 64);
    const int64_t rows = std::bit_ceil(static_cast<uint64_t>(std::min(g.m().max(), kMostRows)));
    const Dim strips = FloorDiv(g.n(), g.b.lanes_along * lanes);
    const int64_t vectors = VectorsOfPage(r.caps(), strips, 8 / rows, 32 / rows);
    // Two pages at once, where each is read for long enough.
    const bool by_two = vectors * rows > 8 && g.k.divisor() % 2 == 0;
    return MatmulColumns{.lanes = lanes, .parts = 1, .vectors = vectors, .depth = by_two ? 2 : 1};
  }
  return MatmulColumns{.lanes = 16, .parts = 8, .vectors = 1};
}

// The sums of all parts, vectors of as many columns as B has side by side.
SharedArray PartSums(const Gemm& g, const MatmulColumns& t) {
  return {AccumulatorOf(g.dtype).Lanes(g.b.lanes_along),
          t.parts * t.lanes * g.m().max() * t.vectors};
}

Verdict ColumnsFits(const Region& r, const Gemm& g, const MatmulColumns& t) {
  if (Verdict v = IsFlat(g); !v) return v;
  if (g.b.lanes_along == 1) return Verdict::No("rows of B are not contiguous");
  if (g.k.divisor() % t.depth != 0) return Verdict::No("steps do not divide k");
  const int64_t sums = g.m().max() * g.b.lanes_along * t.vectors;
  if (sums > (r.caps().runs_on_cpu ? 128 : 32)) return Verdict::No("too many sums");
  if (t.parts == 1) return WorkgroupFits(t.lanes, r.caps());
  return WorkgroupFits(t.lanes * t.parts, r.caps(), std::array{PartSums(g, t)});
}

class ColumnTile {
 public:
  ColumnTile(Emission& m, const Gemm& g, const MatmulColumns& t)
      : m_(m), g_(g), t_(t), wide_(g.b.lanes_along), rows_(g.m().max()) {}
  Dims Grid() const { return {g_.batch, CeilDiv(Vectors(), t_.lanes * t_.vectors)}; }
  void Run(const Dim& at);

 private:
  Dim Vectors() const { return FloorDiv(g_.n(), wide_); }  // of columns
  Type sum_type() const { return AccumulatorOf(g_.dtype).Lanes(wide_); }
  Vals Accumulate(const Dim& k, Vals sums);
  void CombineParts(Vals& sums);

  Emission& m_;
  const Gemm& g_;
  const MatmulColumns& t_;
  const int wide_;
  const int64_t rows_;
  Dim batch_, lane_, part_;
  std::vector<Position> column_;  // vectors of this invocation
};

// Sums [row][vector] with what steps k to k + depth - 1 add.
Vals ColumnTile::Accumulate(const Dim& k, Vals sums) {
  for (int64_t i = 0; i < rows_; ++i) {
    Vals a;
    for (int64_t d = 0; d < t_.depth; ++d)
      a.push_back(splat(g_.a.Load(m_, {batch_, i, k + d}), wide_));
    for (size_t v = 0; v < column_.size(); ++v) {
      const Dim n = column_[v].at * wide_ + m_.e.Lane(wide_);
      Val& sum = sums[static_cast<size_t>(i) * column_.size() + v];
      for (int64_t d = 0; d < t_.depth; ++d)
        sum = fma(a[static_cast<size_t>(d)], g_.b.Load(m_, {batch_, n, k + d}, wide_), sum);
    }
  }
  return sums;
}

// Leaves the whole sums with the invocations of the first part.
void ColumnTile::CombineParts(Vals& sums) {
  Builder& b = m_.b;
  const auto count = static_cast<int64_t>(sums.size());
  const uint16_t shared = m_.AddShared("parts", PartSums(g_, t_));
  const auto at = [&](const Dim& part, int64_t i) {
    return m_.e.Value((part * count + i) * t_.lanes + lane_);
  };
  for (int64_t i = 0; i < count; ++i) b.Store(shared, at(part_, i), sums[static_cast<size_t>(i)]);
  b.Barrier();
  for (int64_t i = 0; i < count; ++i) {
    Val all = b.Load(shared, at(0, i));
    for (int64_t part = 1; part < t_.parts; ++part) all = all + b.Load(shared, at(part, i));
    sums[static_cast<size_t>(i)] = all;
  }
}

void ColumnTile::Run(const Dim& at) {
  Builder& b = m_.b;
  const Dims tile = Unflatten(at, Grid());
  batch_ = tile[0];
  const Dim local = m_.e.Coordinate(b.Builtin(BuiltinKind::kLocalX), t_.lanes * t_.parts - 1);
  lane_ = Mod(local, t_.lanes), part_ = FloorDiv(local, t_.lanes);
  for (int64_t v = 0; v < t_.vectors; ++v)
    column_.push_back(Guard(m_, (tile[1] * t_.vectors + v) * t_.lanes + lane_, Vectors()));
  const Vals zeros(static_cast<size_t>(rows_) * column_.size(), b.Literal(sum_type(), 0));
  const Dim steps = FloorDiv(g_.k, t_.depth);
  Vals sums =
      b.For({m_.e.Value(part_), b.Scalar(steps), b.Int(t_.parts)}, zeros, [&](Val i, Vals carried) {
        return Accumulate(m_.e.Coordinate(i, LastIndex(steps)) * t_.depth, std::move(carried));
      });
  if (t_.parts > 1) CombineParts(sums);
  const Val first = t_.parts > 1 ? m_.e.Value(part_) == 0.0 : Val{};
  for (size_t v = 0; v < column_.size(); ++v)
    IfInside(b, Both(first, column_[v].inside), [&] {
      for (int64_t i = 0; i < rows_; ++i) {
        const Val sum = sums[static_cast<size_t>(i) * column_.size() + v];
        g_.FinishFromZero(m_, {batch_, i, column_[v].at * wide_}, sum);
      }
    });
}

Program ColumnsEmit(const Region& r, const Gemm& g, const MatmulColumns& t) {
  Emission m(r, fmt::format("matmul_columns_{}x{}x{}", t.lanes, t.parts, t.vectors),
             {static_cast<uint32_t>(t.lanes * t.parts), 1, 1});
  ColumnTile tile(m, g, t);
  m.Guarded(m.Workgroups(ir::Product(tile.Grid())), [&](const Dim& at) { tile.Run(at); });
  return OneLaunch(std::move(m).Take());
}

// ---- B's columns are contiguous -----------------------------------------------------------------

struct MatmulDots {
  int64_t workgroup = 64;  // invocations along k
  int64_t columns = 4;     // of C, to a workgroup
  static constexpr Field kFields[] = {
      FieldOf<&MatmulDots::workgroup>("workgroup", "Invocations along k.", "8|16|32|64|128"),
      FieldOf<&MatmulDots::columns>("columns", "Columns of C to a workgroup.", "1|2|4|8")};
};

MatmulDots DotsDefaults(const Region& r, const Gemm&) {
  MatmulDots t;
  if (r.caps().runs_on_cpu) t.workgroup = std::clamp<int64_t>(r.caps().subgroup_size, 8, 64);
  return t;
}

Verdict DotsFits(const Region& r, const Gemm& g, const MatmulDots& t) {
  if (Verdict v = IsFlat(g); !v) return v;
  if (g.b.lanes_k == 1 || g.a.lanes_k != g.b.lanes_k)
    return Verdict::No("columns of B are not contiguous");
  if (g.m().max() * t.columns > 16) return Verdict::No("too many sums");
  const Caps& caps = r.caps();
  if (caps.runs_on_cpu && (!caps.subgroup_arithmetic || t.workgroup != caps.narrow_subgroup_size()))
    return Verdict::No("barriers are dear on this device");
  return WorkgroupFits(t.workgroup, caps,
                       WorkgroupReduction::Shared(t.workgroup, AccumulatorOf(g.dtype)));
}

// Columns from `first` on, all the rows of C.
void EmitDots(Emission& m, const Gemm& g, const MatmulDots& t, const Dim& batch, const Dim& tile) {
  Builder& b = m.b;
  const int wide = g.b.lanes_k;
  const auto rows = static_cast<size_t>(g.m().max()), columns = static_cast<size_t>(t.columns);
  const Dim vectors = FloorDiv(g.k, wide);
  std::vector<Position> column;
  for (int64_t j = 0; j < t.columns; ++j) column.push_back(Guard(m, tile * t.columns + j, g.n()));
  const Type type = AccumulatorOf(g.dtype);
  const Vals zeros(rows * columns, b.Literal(type.Lanes(wide), 0));
  const auto step = [&](Val v, Vals sums) {
    const Dim k = m.e.Coordinate(v, LastIndex(vectors)) * wide + m.e.Lane(wide);
    Vals a;
    for (size_t i = 0; i < rows; ++i)
      a.push_back(g.a.Load(m, {batch, static_cast<int64_t>(i), k}, wide));
    for (size_t j = 0; j < columns; ++j) {
      const Val x = g.b.Load(m, {batch, column[j].at, k}, wide);
      for (size_t i = 0; i < rows; ++i) sums[i * columns + j] = fma(a[i], x, sums[i * columns + j]);
    }
    return sums;
  };
  const Vals sums =
      b.For({b.Builtin(BuiltinKind::kLocalX), b.Scalar(vectors), b.Int(t.workgroup)}, zeros, step);
  WorkgroupReduction together(m, type);
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j) {
      const Val mine = CombineLanes(ReduceKind::kSum, sums[i * columns + j]);
      const Val all = together.Reduce(ReduceKind::kSum, mine);
      const Val writes = b.Builtin(BuiltinKind::kLocalX) == static_cast<double>(j);
      IfInside(b, Both(writes, column[j].inside),
               [&] { g.FinishFromZero(m, {batch, static_cast<int64_t>(i), column[j].at}, all); });
    }
}

Program DotsEmit(const Region& r, const Gemm& g, const MatmulDots& t) {
  Emission m(r, fmt::format("matmul_dots_{}x{}", t.workgroup, t.columns),
             {static_cast<uint32_t>(t.workgroup), 1, 1});
  const Dims space = {g.batch, CeilDiv(g.n(), t.columns)};
  m.Guarded(m.Workgroups(ir::Product(space)), [&](const Dim& at) {
    const Dims tile = Unflatten(at, space);
    EmitDots(m, g, t, tile[0], tile[1]);
  });
  return OneLaunch(std::move(m).Take());
}

}  // namespace

const Schedule kMatmulColumns =
    ScheduleOn<MatmulColumns, PlainGemmOf, ColumnsDefaults, ColumnsFits, ColumnsEmit>(
        "matmul_columns");
const Schedule kMatmulDots =
    ScheduleOn<MatmulDots, PlainGemmOf, DotsDefaults, DotsFits, DotsEmit>("matmul_dots");

}  // namespace forge::codegen
