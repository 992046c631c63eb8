// SPDX-License-Identifier: Apache-2.0
// Matrix product by cooperative matrices, of f16 or of bytes: slices of A and B in shared memory, a
// grid of matrices of C in the registers of each subgroup. Sums have 32 bits; what leaves them goes
// through shared memory, where its elements have places that an epilogue can be told.
#include <algorithm>

#include "codegen/schedules/list.h"
#include "codegen/schedules/matmul_slices.h"

namespace forge::codegen {
namespace {

using ir::Dim;
using ir::Dims;

struct MatmulMatrix {
  int64_t subgroup_rows = 2, subgroup_columns = 4;  // of a workgroup
  int64_t rows = 2, columns = 2;                    // matrices of C, to a subgroup
  int64_t depth = 2;                                // matrices along k in shared memory
  int64_t workgroups = 0;                           // that share all tiles; 0: one for each
  int64_t stages = 1;                               // of slices
  bool in_registers = false;                        // what leaves the sums is computed there
  static constexpr Field kFields[] = {
      FieldOf<&MatmulMatrix::subgroup_rows>("subgroup_rows", "Subgroups along rows of C.", "1|2|4"),
      FieldOf<&MatmulMatrix::subgroup_columns>("subgroup_columns", "Subgroups along its columns.",
                                               "1|2|4"),
      FieldOf<&MatmulMatrix::rows>("rows", "Matrices along rows, to a subgroup.", "1|2|4"),
      FieldOf<&MatmulMatrix::columns>("columns", "Matrices along columns, to a subgroup.", "1|2|4"),
      FieldOf<&MatmulMatrix::depth>("depth", "Matrices along k in shared memory.", "1|2|4"),
      FieldOf<&MatmulMatrix::workgroups>("workgroups", "That share all tiles; 0: one for each.",
                                         "0|32|64|128|256"),
      FieldOf<&MatmulMatrix::stages>("stages", "Slices in shared memory at once.", "1|2"),
      FieldOf<&MatmulMatrix::in_registers>("in_registers",
                                           "Sums leave matrices without shared memory.")};
};

// The largest of the device's matrices of such elements; null: it has none.
const MatrixShape* ShapeOf(DType a, DType b, const Caps& caps) {
  const MatrixShape* best = nullptr;
  const auto size = [](const MatrixShape& s) { return int64_t{s.m} * s.n * s.k; };
  for (const MatrixShape& s : caps.matrices)
    if (s.a == a && s.b == b && !s.workgroup_scope && (best == nullptr || size(s) > size(*best)))
      best = &s;
  return best;
}
const MatrixShape* ShapeOf(const Gemm& g, const Caps& caps) {
  return ShapeOf(g.a_type, g.b_type, caps);
}

// Units that take no more bytes at once than halves multiply them no faster than dot products do.
bool DotsAreAsQuick(const Gemm& g, const MatrixShape& shape, const Caps& caps) {
  const MatrixShape* halves = ShapeOf(DType::kF16, DType::kF16, caps);
  return DotsAreQuick(g, caps) && halves != nullptr && shape.k <= halves->k;
}

// Shared memory is filled, and read, in vectors.
constexpr int kVector = 4;
constexpr int64_t kRowBytes = 16;  // where rows of a matrix may begin
constexpr int kDepth = 64;         // of slices, by the estimates of tools/propose-defaults

// Numbers that follow from the parameters and the device.
struct Sizes {
  Sizes(const MatmulMatrix& t, const MatrixShape& matrix, const Caps& caps)
      : shape(matrix),
        lanes(caps.matrix_subgroup_size()),
        subgroups(t.subgroup_rows * t.subgroup_columns),
        threads(lanes * subgroups),
        rows(t.subgroup_rows * t.rows * shape.m),
        columns(t.subgroup_columns * t.columns * shape.n),
        depth(t.depth * shape.k),
        stages(t.stages),
        result_elements(t.in_registers ? 0 : subgroups * shape.m * result_pitch()) {}
  int64_t result_pitch() const { return shape.n + 4; }
  // Elements from row to row of a slice: rows begin in different banks.
  int64_t pitch() const {
    const int64_t unit = kRowBytes * 8 / BitWidth(shape.a);
    return (depth + unit - 1) / unit * unit + unit;
  }
  int64_t SharedBytes() const {
    return stages * (rows + columns) * pitch() * BitWidth(shape.a) / 8 +
           result_elements * BitWidth(shape.c) / 8;
  }
  MatrixShape shape;
  int64_t lanes, subgroups, threads;  // lanes of a subgroup; subgroups and threads of a workgroup
  int64_t rows, columns, depth;       // of C and k, to a workgroup
  int64_t stages;
  int64_t result_elements;  // of C, in shared memory
};

bool Takes(const Region& r) {
  const auto g = GemmOf(r);
  return g && ((g->a_type == DType::kF16 && g->b_type == DType::kF16) || OfBytes(*g));
}

Tiling TilingOf(const Gemm& g, const MatmulMatrix& t, const Sizes& s) {
  return {g, s.rows, s.columns, s.depth, t.workgroups};
}

MatmulMatrix Defaults(const Region& r) {
  const Gemm g = *GemmOf(r);
  MatmulMatrix t;
  const MatrixShape* shape = ShapeOf(g, r.caps());
  if (shape == nullptr) return t;
  t.in_registers = r.caps().matrix_elements;
  while (t.subgroup_columns > 1 && !WorkgroupFits(Sizes(t, *shape, r.caps()).threads, r.caps()))
    t.subgroup_columns /= 2;
  const auto shrink = [](int64_t& tiles, int64_t& subgroups, int64_t size, int64_t extent) {
    while (tiles > 1 && extent <= tiles * subgroups * size / 2) tiles /= 2;
    while (subgroups > 1 && extent <= tiles * subgroups * size / 2) subgroups /= 2;
  };
  shrink(t.rows, t.subgroup_rows, shape->m, g.m.max());
  shrink(t.columns, t.subgroup_columns, shape->n, g.n.max());
  // Lanes of narrow subgroups hold so much of a matrix that deeper slices spill.
  if (r.caps().matrix_subgroup_size() >= 32) t.depth = std::clamp(kDepth / shape->k, 1, 4);
  while (t.depth > 1 && ((t.depth / 2) * shape->k >= g.k.max() ||
                         Sizes(t, *shape, r.caps()).SharedBytes() > r.caps().max_shared_bytes))
    t.depth /= 2;
  t.workgroups = TilingOf(g, t, Sizes(t, *shape, r.caps())).SuggestWorkgroups();
  return t;
}

Verdict Fits(const Region& r, const MatmulMatrix& t) {
  const Caps& caps = r.caps();
  const Gemm g = *GemmOf(r);
  const MatrixShape* shape = ShapeOf(g, caps);
  if (shape == nullptr) return Verdict::No("the device has no such matrices");
  if (caps.runs_on_cpu) return Verdict::No("vectors are quicker on this device");
  if (t.in_registers && !caps.matrix_elements)
    return Verdict::No("the device does not show elements of matrices");
  if (DotsAreAsQuick(g, *shape, caps)) return Verdict::No("dot products are as quick");
  const Sizes s(t, *shape, caps);
  if (g.m.max() < s.shape.m || g.n.max() < s.shape.n || g.k.max() < s.shape.k)
    return Verdict::No("the product is smaller than a matrix");
  if (s.SharedBytes() > caps.max_shared_bytes) return Verdict::No("too little shared memory");
  if (Verdict v = TilingOf(g, t, s).Fits(r); !v) return v;
  if (Verdict v = StagesFit(g, s.stages); !v) return v;
  return WorkgroupFits(s.threads, caps);
}

class Tile {
 public:
  Tile(Emission& m, const Gemm& g, const MatmulMatrix& t, const Sizes& s);
  Dim count() const { return tiling_.workgroups(); }
  void Run(const Dim& at);

 private:
  // One operand's slice in shared memory, [stage][length of C's axis][depth]: what units that
  // multiply matrices are fed with, however the operand lies in memory.
  struct Shared {
    Slice slice;
    Type element;
    uint16_t view;
  };
  Shared NewShared(bool is_a, int64_t length);
  int64_t pitch() const { return s_.pitch() / kVector; }  // in vectors
  SliceCopy Copy(const Shared& s);
  // The matrix that begins at `along`, and at step `k` of the slice.
  Val Matrix(const Shared& s, const Dim& stage, const Dim& along, int64_t k);
  Vals Multiply(Vals sums, const Dim& stage);
  void RunPart(const SliceLoop& loop, const TilePart& part);
  void Finish(const TilePart& part, const Vals& sums);
  void FinishMatrix(const TilePart& part, const Dim& row, const Dim& column);
  void FinishElements(const TilePart& part, const Dim& row, const Dim& column, Val sum);
  void FinishAt(const TilePart& part, const Dim& row, const Dim& column, Val inside,
                absl::FunctionRef<Val()> sum);

  Emission& m_;
  const Gemm& g_;
  const MatmulMatrix& t_;
  const Sizes& s_;
  Tiling tiling_;
  Shared a_, b_;
  uint16_t results_ = 0;  // [subgroup][row][result_pitch], unless they stay in registers
  Dim batch_, row_tile_, column_tile_;
  Dim local_, lane_, subgroup_, first_row_, first_column_;  // the last two: of the subgroup
};

Tile::Tile(Emission& m, const Gemm& g, const MatmulMatrix& t, const Sizes& s)
    : m_(m),
      g_(g),
      t_(t),
      s_(s),
      tiling_(TilingOf(g, t, s)),
      a_(NewShared(true, s.rows)),
      b_(NewShared(false, s.columns)) {
  if (s.result_elements > 0)
    results_ = m.b.AddView({.name = "results",
                            .space = Space::kShared,
                            .elem = Type{s.shape.c},
                            .extent = static_cast<uint32_t>(s.result_elements),
                            .reads = true,
                            .writes = true});
}

Tile::Shared Tile::NewShared(bool is_a, int64_t length) {
  const Type element{is_a ? s_.shape.a : s_.shape.b};
  return {.slice = Slice(g_, is_a, length),
          .element = element,
          .view = m_.b.AddView({.name = is_a ? "a" : "b",
                                .space = Space::kShared,
                                .elem = element.Lanes(kVector),
                                .extent = static_cast<uint32_t>(t_.stages * length * pitch()),
                                .reads = true,
                                .writes = true})};
}

SliceCopy Tile::Copy(const Shared& s) {
  const auto fetch = [this, &s](const Dim& along, const Dim& k) {
    const Dim first = s.slice.is_a ? row_tile_ * s_.rows : column_tile_ * s_.columns;
    Vals vectors;
    for (const Vals& v : s.slice.LoadAlongK(m_, batch_, first + along, k, kVector))
      vectors.push_back(m_.b.Convert(m_.b.Pack(v[0].type().Lanes(kVector), v), s.element.elem));
    return vectors;
  };
  const auto put = [this, &s](const Vals& fetched, const Dim& stage, const Dim& along,
                              const Dim& k) {
    const Dim first = stage * s.slice.length + along;
    for (size_t i = 0; i < fetched.size(); ++i) {
      const Dim row = first + static_cast<int64_t>(i);
      m_.b.Store(s.view, m_.e.Value(row * pitch() + FloorDiv(k, kVector)), fetched[i]);
    }
  };
  return {.slice = s.slice, .steps = kVector, .fetch = fetch, .put = put};
}

Val Tile::Matrix(const Shared& s, const Dim& stage, const Dim& along, int64_t k) {
  const MatrixShape& shape = s_.shape;
  const Type type = s.slice.is_a ? Type::Matrix(shape.a, MatrixUse::kA, shape.m, shape.k)
                                 : Type::Matrix(shape.b, MatrixUse::kB, shape.k, shape.n);
  const Dim index = (stage * s.slice.length + along) * pitch() + k / kVector;
  return m_.b.MatrixLoad(s.view, type, m_.e.Value(index), m_.b.Int(pitch()), !s.slice.is_a);
}

Vals Tile::Multiply(Vals sums, const Dim& stage) {
  for (int64_t k = 0; k < s_.depth; k += s_.shape.k) {
    Vals a, b;
    for (int64_t i = 0; i < t_.rows; ++i)
      a.push_back(Matrix(a_, stage, first_row_ + i * s_.shape.m, k));
    for (int64_t j = 0; j < t_.columns; ++j)
      b.push_back(Matrix(b_, stage, first_column_ + j * s_.shape.n, k));
    for (size_t i = 0; i < a.size(); ++i)
      for (size_t j = 0; j < b.size(); ++j) {
        Val& sum = sums[i * b.size() + j];
        sum = m_.b.MatrixMulAdd(a[i], b[j], sum);
      }
  }
  return sums;
}

// Hands `sum` over, which is asked for where [row, column] of the workgroup's tile is inside of C.
void Tile::FinishAt(const TilePart& part, const Dim& row, const Dim& column, Val inside,
                    absl::FunctionRef<Val()> sum) {
  const Position i = Guard(m_, row_tile_ * s_.rows + row, g_.m);
  const Position j = Guard(m_, column_tile_ * s_.columns + column, g_.n);
  IfInside(m_.b, Both(Both(i.inside, j.inside), inside), [&] {
    Val v = sum();
    if (v.type().elem == DType::kU32) v = bitcast(v, DType::kI32);
    tiling_.Store(m_, part, row, column, {batch_, i.at, j.at, 0}, v);
  });
}

// The matrix in this subgroup's part of the stage, whose first element is at [row, column] of the
// workgroup's tile.
void Tile::FinishMatrix(const TilePart& tile_part, const Dim& row, const Dim& column) {
  const int lanes = LanesFor(g_.n);
  const Dim part = subgroup_ * (s_.shape.m * s_.result_pitch());
  const int64_t vectors = int64_t{s_.shape.m} * s_.shape.n / lanes;
  for (int64_t first = 0; first < vectors; first += s_.lanes) {
    const Dims place = Unflatten(lane_ + first, {s_.shape.m, s_.shape.n / lanes});
    Val inside;
    if (first + s_.lanes > vectors)
      inside = m_.e.Value(lane_ + first) < static_cast<double>(vectors);
    FinishAt(tile_part, row + place[0], column + place[1] * lanes, inside, [&] {
      Vals parts;
      for (int l = 0; l < lanes; ++l)
        parts.push_back(m_.b.Load(
            results_, m_.e.Value(part + place[0] * s_.result_pitch() + place[1] * lanes + l)));
      return lanes == 1 ? parts[0] : m_.b.Pack(parts[0].type().Lanes(lanes), parts);
    });
  }
}

// The same of a matrix in registers.
void Tile::FinishElements(const TilePart& part, const Dim& row, const Dim& column, Val sum) {
  m_.b.ForElements(sum, [&](Val i, Val j, Val element) {
    FinishAt(part, row + m_.e.Coordinate(i, s_.shape.m - 1),
             column + m_.e.Coordinate(j, s_.shape.n - 1), {}, [&] { return element; });
  });
}

void Tile::Finish(const TilePart& tile_part, const Vals& sums) {
  const Dim part = subgroup_ * (s_.shape.m * s_.result_pitch());
  for (int64_t i = 0; i < t_.rows; ++i)
    for (int64_t j = 0; j < t_.columns; ++j) {
      const Dim row = first_row_ + i * s_.shape.m, column = first_column_ + j * s_.shape.n;
      const Val sum = sums[static_cast<size_t>(i * t_.columns + j)];
      if (t_.in_registers) {
        FinishElements(tile_part, row, column, sum);
        continue;
      }
      if (i + j > 0) m_.b.Barrier();  // the last matrix has been read
      m_.b.MatrixStore(results_, m_.e.Value(part), m_.b.Int(s_.result_pitch()), sum);
      m_.b.Barrier();
      FinishMatrix(tile_part, row, column);
    }
}

void Tile::RunPart(const SliceLoop& loop, const TilePart& part) {
  batch_ = part.batch, row_tile_ = part.row, column_tile_ = part.column;
  const Type sum = Type::Matrix(s_.shape.c, MatrixUse::kAccumulator, s_.shape.m, s_.shape.n);
  const Vals zeros(static_cast<size_t>(t_.rows * t_.columns), m_.b.Literal(sum, 0));
  const Vals sums = loop.Run(part, zeros);
  tiling_.Finish(m_, part, [&](const TilePart& how) { Finish(how, sums); });
}

void Tile::Run(const Dim& at) {
  Builder& b = m_.b;
  local_ = m_.e.Coordinate(b.Builtin(BuiltinKind::kLocalX), s_.threads - 1);
  lane_ = m_.e.Coordinate(b.Builtin(BuiltinKind::kLane), s_.lanes - 1);
  subgroup_ = m_.e.Coordinate(b.Builtin(BuiltinKind::kSubgroup), s_.subgroups - 1);
  first_row_ = FloorDiv(subgroup_, t_.subgroup_columns) * (t_.rows * s_.shape.m);
  first_column_ = Mod(subgroup_, t_.subgroup_columns) * (t_.columns * s_.shape.n);
  const SliceLoop loop{
      .m = m_,
      .threads = s_.threads,
      .local = local_,
      .depth = s_.depth,
      .stages = t_.stages,
      .copies = {Copy(a_), Copy(b_)},
      .multiply = [this](Vals sums, const Dim& stage) { return Multiply(std::move(sums), stage); }};
  tiling_.ForParts(m_, at, [&](const TilePart& part) { RunPart(loop, part); });
}

Program Emit(const Region& r, const MatmulMatrix& t) {
  const Gemm g = *GemmOf(r);
  const Sizes s(t, *ShapeOf(g, r.caps()), r.caps());
  Program out{.kernel = fmt::format("matmul_matrix_{}x{}x{}{}", s.rows, s.columns, s.depth,
                                    TilingOf(g, t, s).Text() + StagesText(t.stages))};
  Emission m(r, out.kernel, {static_cast<uint32_t>(s.threads), 1, 1});
  m.launch.kernel.subgroup = static_cast<uint32_t>(s.lanes);
  Tile tile(m, g, t, s);
  m.Guarded(m.Workgroups(tile.count()), [&](const Dim& at) { tile.Run(at); });
  out.launches.push_back(std::move(m).Take());
  TilingOf(g, t, s).AddUp(r, out);
  return out;
}

}  // namespace

const Schedule kMatmulMatrix =
    ScheduleOf<MatmulMatrix, Takes, Defaults, Fits, Emit>("matmul_matrix");

}  // namespace forge::codegen
