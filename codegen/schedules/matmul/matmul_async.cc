// SPDX-License-Identifier: Apache-2.0
// Matrix product of halves by matrices that a workgroup holds. Slices of A and B are copied past
// registers, as they lie in memory, into a ring of stages in shared memory, from where the matrix
// units read them: while one slice is multiplied, the next ones are on their way.
#include <algorithm>

#include "codegen/region/storage.h"
#include "codegen/schedules/matmul/matmul_slices.h"

namespace forge::codegen {
namespace {

using ir::Dim;
using ir::Dims;

struct MatmulAsync {
  int64_t groups = 2;     // of 128 invocations, each with rows of C of its own
  int64_t columns = 256;  // of C, in a tile
  int64_t stages = 4;     // slices in shared memory
  int64_t workgroups = 0;
  int64_t group = 1;
  static constexpr Field kFields[] = {
      FieldOf<&MatmulAsync::groups>("groups", "Of 128 invocations, with rows of their own.", "1|2"),
      FieldOf<&MatmulAsync::columns>("columns", "Columns of a tile.", "64|128|256"),
      FieldOf<&MatmulAsync::stages>("stages", "Slices in shared memory at once.", "3|4|5|6"),
      FieldOf<&MatmulAsync::workgroups>("workgroups", "That share all tiles; 0: one for each.",
                                        "0|64|132|264"),
      FieldOf<&MatmulAsync::group>("group", "Rows of tiles, taken column by column.", "1|4|8|16")};
};

// A slice has lines of 64 halves; a piece of 8 is copied at once.
constexpr int64_t kLine = kSwizzledLineBytes / 2, kPiece = kSwizzledPieceBytes / 2;
constexpr int64_t kDepth = kLine;  // of a slice
constexpr int kVector = 4;         // elements of the views

const MatrixShape* ShapeOf(const Gemm& g, const Caps& caps) {
  for (const MatrixShape& s : caps.workgroup_matrices)
    if (s.a == g.a.type && s.b == g.b.type) return &s;
  return nullptr;
}

// Whether pieces lie along k in memory; nullopt: along neither axis.
std::optional<bool> PiecesOnK(const Region& r, const Gemm& g, const Factor& f) {
  if (f.padded || f.load) return std::nullopt;
  const ir::SymbolRef lane = NewCoordinate("lane", kPiece - 1);
  const Dim first = Any(g.k, kPiece);
  const auto lies = [&](const Factor::At& at) {
    const std::optional<Region::Source> from = r.SourceOf(f.operand, f.index(at));
    return from && r.PartsOf(from->argument) == 1 &&
           VectorAt(f.type, from->flat, lane, kPiece, r.caps()).has_value();
  };
  if (g.k.divisor() % kPiece == 0 && lies({Any(g.batch, 1), Any(f.extent, 1), first + Dim(lane)}))
    return true;
  if (f.extent.divisor() % kPiece == 0 &&
      lies({Any(g.batch, 1), Any(f.extent, kPiece) + Dim(lane), Any(g.k, 1)}))
    return false;
  return std::nullopt;
}

int64_t RowsOf(const MatmulAsync& t, const MatrixShape& s) { return t.groups * s.m; }

std::array<SharedArray, 2> ArraysOf(const MatmulAsync& t, const MatrixShape& s) {
  const Type elem = Type{s.a == DType::kBF16 ? DType::kU16 : s.a}.Lanes(kVector);
  const auto of = [&](int64_t length) {
    return SharedArray{elem, t.stages * length * kDepth / kVector, true};
  };
  return {of(RowsOf(t, s)), of(t.columns)};
}

Tiling TilingOf(const Gemm& g, const MatmulAsync& t, const MatrixShape& s) {
  return {g, {RowsOf(t, s), t.columns, kDepth, t.workgroups, 1, t.group}};
}

MatmulAsync Defaults(const Region& r, const Gemm& g) {
  MatmulAsync t;
  const MatrixShape* shape = ShapeOf(g, r.caps());
  if (shape == nullptr) return t;
  while (t.columns > 64 && g.n().max() <= t.columns / 2) t.columns /= 2;
  if (g.m().max() <= shape->m) t.groups = 1;
  t.workgroups = TilingOf(g, t, *shape).SuggestWorkgroups();
  t.group = TilingOf(g, t, *shape).SuggestGroup(r);
  return t;
}

Verdict Fits(const Region& r, const Gemm& g, const MatmulAsync& t) {
  const Caps& caps = r.caps();
  const MatrixShape* shape = ShapeOf(g, caps);
  if (shape == nullptr) return Verdict::No("workgroups hold no such matrices on the device");
  if (!caps.async_copies) return Verdict::No("the device copies nothing past registers");
  if (!PiecesOnK(r, g, g.a) || !PiecesOnK(r, g, g.b))
    return Verdict::No("operands do not lie in pieces of 16 bytes");
  if (g.m().max() < shape->m || g.n().max() < 64 || g.k.max() < kDepth)
    return Verdict::No("the product is smaller than a tile");
  if (const int64_t bytes = SharedBytes(ArraysOf(t, *shape)); bytes > caps.max_large_shared_bytes)
    return Verdict::No(fmt::format("{} bytes of shared memory, the device has {}", bytes,
                                   caps.max_large_shared_bytes));
  if (Verdict v = TilingOf(g, t, *shape).Fits(r); !v) return v;
  return WorkgroupFits(t.groups * kHoldersOfRows, caps);
}

// A slice of `length` by kDepth: lines along k, one below the other; or lines along the axis of C,
// of which those of the next kLine elements come below all of the first ones.
struct Lines {
  const Factor& factor;
  bool is_a, on_k;
  int64_t length;
  uint16_t view = 0;

  int64_t panels() const { return on_k ? 1 : length / kLine; }
  int64_t lines() const { return on_k ? length : kDepth; }  // of a panel
  int64_t size() const { return length * kDepth; }
};

class AsyncTile {
 public:
  AsyncTile(const Region& r, const Tiling& tiling, const MatmulAsync& t, const MatrixShape& s);
  Launch Emit();

 private:
  const Gemm& gemm() const { return tiling_.gemm(); }
  Type MatrixOf(const Lines& l) const;
  void Copy(const TilePart& part, const Lines& l, const Dim& slice);
  // Begins to copy a slice of the part, as a group; no slice beyond the last one.
  void Fetch(const TilePart& part, Val slice);
  Val Load(const Lines& l, const Dim& slice);
  Val SumsOf(const TilePart& part);
  void Finish(const TilePart& part, Val sums);

  Emission m_;
  const Tiling& tiling_;
  const MatmulAsync t_;
  const MatrixShape shape_;
  Lines a_, b_;
  Dim local_;  // this invocation
};

AsyncTile::AsyncTile(const Region& r, const Tiling& tiling, const MatmulAsync& t,
                     const MatrixShape& s)
    : m_(r,
         fmt::format("matmul_async_{}x{}x{}_{}_stages{}", tiling.size().rows, t.columns, kDepth,
                     t.stages, tiling.Text()),
         {static_cast<uint32_t>(t.groups * kHoldersOfRows), 1, 1}),
      tiling_(tiling),
      t_(t),
      shape_(s),
      a_{tiling.gemm().a, true, *PiecesOnK(r, tiling.gemm(), tiling.gemm().a), tiling.size().rows},
      b_{tiling.gemm().b, false, *PiecesOnK(r, tiling.gemm(), tiling.gemm().b), t.columns} {
  m_.launch.kernel.subgroup = static_cast<uint32_t>(r.caps().matrix_subgroup_size());
  const auto arrays = ArraysOf(t, s);
  a_.view = m_.AddShared("a", arrays[0]);
  b_.view = m_.AddShared("b", arrays[1]);
}

Type AsyncTile::MatrixOf(const Lines& l) const {
  const auto length = static_cast<uint16_t>(l.length);
  return l.is_a ? Type::Matrix(shape_.a, MatrixUse::kA, length, kDepth, Scope::kWorkgroup)
                : Type::Matrix(shape_.b, MatrixUse::kB, kDepth, length, Scope::kWorkgroup);
}

void AsyncTile::Copy(const TilePart& part, const Lines& l, const Dim& slice) {
  constexpr int64_t kPieces = kLine / kPiece;
  const Dim stage = Mod(slice, t_.stages) * l.size();
  const Dims space = {l.panels(), l.lines(), kPieces};
  ForUnits(m_, local_, m_.launch.kernel.workgroup[0], ir::Product(space).constant(),
           [&](const Dim& unit, Val exists) {
             const Dims at = Unflatten(unit, space);
             const Dim within = at[0] * kLine + at[2] * kPiece;
             const Dim along = (l.is_a ? part.row : part.column) * l.length +
                               (l.on_k ? at[1] : within);
             const Dim k = slice * kDepth + (l.on_k ? within : at[1]);
             const Position i = Guard(m_, along, l.factor.extent), j = Guard(m_, k, gemm().k);
             const Val inside = Both(i.inside, j.inside);
             const Elements::Place from = m_.e.PlaceOf(
                 l.factor.operand, l.factor.index({part.batch, i.at, j.at}), kPiece);
             const Dim to = stage + (at[0] * l.lines() + at[1]) * kLine + at[2] * kPiece;
             IfInside(m_.b, exists, [&] {
               m_.b.CopyAsync({l.view, m_.e.Value(FloorDiv(to, kVector))}, {from.view, from.index},
                              from.elements, inside ? inside : m_.b.Literal(kBool, 1));
             });
           });
}

void AsyncTile::Fetch(const TilePart& part, Val slice) {
  m_.b.If(slice < part.steps, [&] {
    const Dim at = m_.e.Coordinate(m_.e.Value(part.first) + slice, part.last);
    Copy(part, a_, at);
    Copy(part, b_, at);
  });
  m_.b.CommitCopies();
}

Val AsyncTile::Load(const Lines& l, const Dim& slice) {
  const Dim first = Mod(slice, t_.stages) * l.size();
  return m_.b.MatrixLoad(l.view, MatrixOf(l), m_.e.Value(FloorDiv(first, kVector)),
                         m_.b.Int(l.lines() * kLine / kVector), l.is_a != l.on_k);
}

// A product runs while the next slice is waited for; behind the barrier after that the stage of the
// product before it is free, for all have waited for that.
Val AsyncTile::SumsOf(const TilePart& part) {
  constexpr int kRunning = 1;  // products
  Builder& b = m_.b;
  const int64_t ahead = t_.stages - 1 - kRunning;
  for (int64_t i = 0; i < ahead; ++i) Fetch(part, b.Int(i));
  const Type type =
      Type::Matrix(shape_.c, MatrixUse::kAccumulator, static_cast<uint16_t>(a_.length),
                   static_cast<uint16_t>(b_.length), Scope::kWorkgroup);
  const Vals sums = b.For(
      {b.Int(0), part.steps, b.Int(1)}, {b.Literal(type, 0)}, [&](Val i, const Vals& carried) {
        b.WaitCopies(static_cast<int>(ahead - 1));
        b.Barrier();
        const Dim slice = m_.e.Coordinate(m_.e.Value(part.first) + i, part.last);
        const Val sum = b.MatrixMulAdd(Load(a_, slice), Load(b_, slice), carried[0]);
        Fetch(part, i + static_cast<double>(ahead));
        return Vals{b.MatrixWait(sum, kRunning)};
      });
  return b.MatrixWait(sums[0], 0);
}

void AsyncTile::Finish(const TilePart& part, Val sums) {
  m_.b.ForElements(sums, [&](Val row, Val column, Val elements) {
    const Dim i = m_.e.Coordinate(row, a_.length - 1);
    const int together = elements.type().lanes;
    const Dim j = m_.e.Coordinate(column, b_.length - together, together);
    if (gemm().n().divisor() % together == 0)
      return tiling_.Store(m_, part, i, j, {}, [&] { return elements; });
    for (int n = 0; n < together; ++n)
      tiling_.Store(m_, part, i, j + n, {}, [&] { return m_.b.Extract(elements, n); });
  });
}

Launch AsyncTile::Emit() {
  m_.Guarded(m_.Workgroups(tiling_.workgroups()), [&](const Dim& at) {
    local_ = m_.e.Coordinate(m_.b.Builtin(BuiltinKind::kLocalX), m_.launch.kernel.workgroup[0] - 1);
    tiling_.ForParts(m_, at, [&](const TilePart& part) {
      const Val sums = SumsOf(part);
      tiling_.Finish(m_, part, [&](const TilePart& how) { Finish(how, sums); });
    });
  });
  return std::move(m_).Take();
}

Program Emit(const Region& r, const Gemm& g, const MatmulAsync& t) {
  const MatrixShape& shape = *ShapeOf(g, r.caps());
  const Tiling tiling = TilingOf(g, t, shape);
  return tiling.ProgramOf(r, AsyncTile(r, tiling, t, shape).Emit());
}

}  // namespace

const Schedule kMatmulAsync =
    ScheduleOn<MatmulAsync, PlainGemmOf, Defaults, Fits, Emit>("matmul_async");

}  // namespace forge::codegen
