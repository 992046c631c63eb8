// SPDX-License-Identifier: Apache-2.0
// Matrix product by cooperative matrices: slices of A and B in shared memory, a grid of matrices of
// C in the registers of each subgroup. Sums are f32; what leaves them goes through shared memory,
// where its elements have places that an epilogue can be told.
#include <algorithm>

#include "codegen/schedules/list.h"
#include "codegen/schedules/matmul_split.h"

namespace forge::codegen {
namespace {

using ir::Dim;
using ir::Dims;

struct MatmulMatrix {
  int64_t subgroup_rows = 2, subgroup_columns = 2;  // of a workgroup
  int64_t rows = 2, columns = 2;                    // matrices of C, to a subgroup
  int64_t depth = 2;                                // matrices along k in shared memory
  int64_t pieces = 1;                               // that k is cut into
  static constexpr Field kFields[] = {
      FieldOf<&MatmulMatrix::subgroup_rows>("subgroup_rows", "Subgroups along rows of C.", "1|2|4"),
      FieldOf<&MatmulMatrix::subgroup_columns>("subgroup_columns", "Subgroups along its columns.",
                                               "1|2|4"),
      FieldOf<&MatmulMatrix::rows>("rows", "Matrices along rows, to a subgroup.", "1|2|4"),
      FieldOf<&MatmulMatrix::columns>("columns", "Matrices along columns, to a subgroup.", "1|2|4"),
      FieldOf<&MatmulMatrix::depth>("depth", "Matrices along k in shared memory.", "1|2|4"),
      FieldOf<&MatmulMatrix::pieces>("pieces", "That k is cut into.", "1|2|4|8")};
};

// The largest of the device's matrices of f16 with sums of f32; null: it has none.
const MatrixShape* ShapeOf(const Caps& caps) {
  const MatrixShape* best = nullptr;
  const auto size = [](const MatrixShape& s) { return int64_t{s.m} * s.n * s.k; };
  for (const MatrixShape& s : caps.matrices)
    if (s.a == DType::kF16 && s.b == DType::kF16 && s.c == DType::kF32 && !s.workgroup_scope &&
        (best == nullptr || size(s) > size(*best)))
      best = &s;
  return best;
}

// Shared memory is filled, and read, in vectors of f16.
constexpr int kVector = 4;
constexpr int64_t kPad = 8;   // elements beyond a row, so that rows begin in different banks
constexpr int64_t kHalf = 2;  // bytes

// Numbers that follow from the parameters and the device.
struct Sizes {
  Sizes(const MatmulMatrix& t, const Caps& caps)
      : shape(*ShapeOf(caps)),
        lanes(caps.matrix_subgroup_size()),
        subgroups(t.subgroup_rows * t.subgroup_columns),
        threads(lanes * subgroups),
        rows(t.subgroup_rows * t.rows * shape.m),
        columns(t.subgroup_columns * t.columns * shape.n),
        depth(t.depth * shape.k) {}
  int64_t stage_pitch() const { return shape.n + 4; }
  int64_t SharedBytes() const {
    return (rows * (depth + kPad) + std::max(depth * (columns + kPad), columns * (depth + kPad))) *
               kHalf +
           subgroups * shape.m * stage_pitch() * int64_t{sizeof(float)};
  }
  MatrixShape shape;
  int64_t lanes, subgroups, threads;  // lanes of a subgroup; subgroups and threads of a workgroup
  int64_t rows, columns, depth;       // of C and k, to a workgroup
};

bool Takes(const Region& r) {
  const ir::Types& in = r.anchor_inputs();
  return GemmOf(r) && in[0].dtype() == DType::kF16 && in[1].dtype() == DType::kF16;
}

std::shared_ptr<void> Defaults(const Region& r) {
  const Gemm g = *GemmOf(r);
  MatmulMatrix t;
  const MatrixShape* shape = ShapeOf(r.caps());
  if (shape == nullptr) return Boxed(t);
  const auto shrink = [](int64_t& tiles, int64_t& subgroups, int64_t size, int64_t extent) {
    while (tiles > 1 && extent <= tiles * subgroups * size / 2) tiles /= 2;
    while (subgroups > 1 && extent <= tiles * subgroups * size / 2) subgroups /= 2;
  };
  shrink(t.rows, t.subgroup_rows, shape->m, g.m.max());
  shrink(t.columns, t.subgroup_columns, shape->n, g.n.max());
  // Lanes of narrow subgroups hold so much of a matrix that deeper slices spill.
  if (r.caps().matrix_subgroup_size() >= 32) t.depth = 4;
  while (t.depth > 1 && ((t.depth / 2) * shape->k >= g.k.max() ||
                         Sizes(t, r.caps()).SharedBytes() > r.caps().max_shared_bytes))
    t.depth /= 2;
  const Sizes s(t, r.caps());
  t.pieces = PiecesFor(g, s.rows, s.columns, s.depth);
  return Boxed(t);
}

Verdict Fits(const Region& r, const void* p) {
  const Caps& caps = r.caps();
  if (!caps.f16 || ShapeOf(caps) == nullptr) return Verdict::No("the device has no such matrices");
  const Sizes s(Parameters<MatmulMatrix>(p), caps);
  const Gemm g = *GemmOf(r);
  if (g.m.max() < s.shape.m || g.n.max() < s.shape.n || g.k.max() < s.shape.k)
    return Verdict::No("the product is smaller than a matrix");
  if (s.SharedBytes() > caps.max_shared_bytes) return Verdict::No("too little shared memory");
  if (Verdict v = PiecesFit(g, Parameters<MatmulMatrix>(p).pieces, caps); !v) return v;
  return WorkgroupFits(s.threads, caps);
}

class Tile {
 public:
  Tile(Emission& m, const Gemm& g, const MatmulMatrix& t, const Sizes& s);
  Dim count() const { return g_.batch * rows_.count() * columns_.count() * t_.pieces; }
  void Run(const Dim& at);

 private:
  // One operand's slice in shared memory: `length` of C's axis by the depth. Rows of it run along
  // k, or along C's axis.
  struct Slice {
    uint16_t view = 0;
    int64_t length = 0;
    bool is_a = false, along_k = false;
  };
  Slice NewSlice(std::string name, bool is_a, int64_t length, bool along_k);
  int64_t RowOf(const Slice& s) const { return s.along_k ? s_.depth : s.length; }
  int64_t Pitch(const Slice& s) const { return (RowOf(s) + kPad) / kVector; }  // in vectors
  void Fill(const Slice& slice, const Dim& k);
  // kVector neighbours of the slice's row, the first at `along` and `k`, 0 where they lie outside.
  Val Fetch(const Slice& slice, const Dim& along, const Dim& k);
  Val FetchSome(const Slice& slice, const Dim& along, const Dim& k, int lanes);
  // The matrix that begins at `along`, and at step `k` of the slice.
  Val Load(const Slice& slice, const Dim& along, int64_t k);
  Vals Multiply(Vals sums);
  void Finish(const Vals& sums);
  void FinishMatrix(const Dim& row, const Dim& column);

  Emission& m_;
  const Gemm& g_;
  const MatmulMatrix& t_;
  const Sizes& s_;
  TiledAxis rows_, columns_;
  Piece piece_;
  Slice a_, b_;
  uint16_t stage_;  // [subgroup][row][stage_pitch]
  Dim batch_, row_tile_, column_tile_;
  Dim local_, lane_, subgroup_, first_row_, first_column_;  // the last two: of the subgroup
};

Tile::Tile(Emission& m, const Gemm& g, const MatmulMatrix& t, const Sizes& s)
    : m_(m),
      g_(g),
      t_(t),
      s_(s),
      rows_{g.m, s.rows},
      columns_{g.n, s.columns},
      piece_{t.pieces, s.depth},
      a_(NewSlice("a", true, s.rows, true)),
      b_(NewSlice("b", false, s.columns, g.b_lanes_k > g.b_lanes_n)),
      stage_(
          m.b.AddView({.name = "stage",
                       .space = Space::kShared,
                       .elem = kF32,
                       .extent = static_cast<uint32_t>(s.subgroups * s.shape.m * s.stage_pitch()),
                       .reads = true,
                       .writes = true})) {}

Tile::Slice Tile::NewSlice(std::string name, bool is_a, int64_t length, bool along_k) {
  Slice slice{.view = 0, .length = length, .is_a = is_a, .along_k = along_k};
  const int64_t rows = along_k ? length : s_.depth;
  slice.view = m_.b.AddView({.name = std::move(name),
                             .space = Space::kShared,
                             .elem = Type{DType::kF16}.Lanes(kVector),
                             .extent = static_cast<uint32_t>(rows * Pitch(slice)),
                             .reads = true,
                             .writes = true});
  return slice;
}

Val Tile::FetchSome(const Slice& slice, const Dim& along, const Dim& k, int lanes) {
  const Dim first = (slice.is_a ? row_tile_ * s_.rows : column_tile_ * s_.columns) + along;
  // Vectors are whole: they are inside when their first element is.
  const Position p = Guard(m_, first, slice.is_a ? g_.m : g_.n), q = Guard(m_, k, g_.k);
  Gemm::At at{batch_, p.at, p.at, q.at};
  Dim& vector = slice.along_k ? at.k : slice.is_a ? at.m : at.n;
  vector = vector + m_.e.Lane(lanes);
  const Val v = slice.is_a ? g_.A(m_, at, lanes) : g_.B(m_, at, lanes);
  return Where(Both(p.inside, q.inside), m_.b.Convert(v, DType::kF16), 0);
}

Val Tile::Fetch(const Slice& slice, const Dim& along, const Dim& k) {
  const int lanes = slice.is_a ? g_.a_lanes_k : slice.along_k ? g_.b_lanes_k : g_.b_lanes_n;
  Vals parts;
  for (int i = 0; i < kVector; i += lanes)
    Unpack(FetchSome(slice, along + (slice.along_k ? 0 : i), k + (slice.along_k ? i : 0), lanes),
           parts);
  return m_.b.Pack(Type{DType::kF16}.Lanes(kVector), parts);
}

// Copies a slice from k on; neighbouring invocations load neighbouring elements.
void Tile::Fill(const Slice& slice, const Dim& k) {
  const int64_t in_row = RowOf(slice) / kVector;
  const int64_t vectors = slice.length * s_.depth / kVector;
  for (int64_t first = 0; first < vectors; first += s_.threads) {
    const Dim at = local_ + first;
    const Dims place = Unflatten(at, {vectors / in_row, in_row});
    const Dim along = slice.along_k ? place[0] : place[1] * kVector;
    const Dim step = slice.along_k ? place[1] * kVector : place[0];
    const auto copy = [&] {
      m_.b.Store(slice.view, m_.e.Value(place[0] * Pitch(slice) + place[1]),
                 Fetch(slice, along, k + step));
    };
    if (first + s_.threads <= vectors)
      copy();
    else
      m_.b.If(m_.e.Value(at) < static_cast<double>(vectors), copy);
  }
}

Val Tile::Load(const Slice& slice, const Dim& along, int64_t k) {
  const MatrixShape& s = s_.shape;
  const Type type = slice.is_a ? Type::Matrix(DType::kF16, MatrixUse::kA, s.m, s.k)
                               : Type::Matrix(DType::kF16, MatrixUse::kB, s.k, s.n);
  const Dim pitch = Pitch(slice);
  const Dim index =
      slice.along_k ? along * pitch + k / kVector : FloorDiv(along, kVector) + k * pitch;
  return m_.b.MatrixLoad(slice.view, type, m_.e.Value(index), m_.e.Value(pitch),
                         slice.is_a != slice.along_k);
}

Vals Tile::Multiply(Vals sums) {
  for (int64_t k = 0; k < s_.depth; k += s_.shape.k) {
    Vals a, b;
    for (int64_t i = 0; i < t_.rows; ++i) a.push_back(Load(a_, first_row_ + i * s_.shape.m, k));
    for (int64_t j = 0; j < t_.columns; ++j)
      b.push_back(Load(b_, first_column_ + j * s_.shape.n, k));
    for (size_t i = 0; i < a.size(); ++i)
      for (size_t j = 0; j < b.size(); ++j) {
        Val& sum = sums[i * b.size() + j];
        sum = m_.b.MatrixMulAdd(a[i], b[j], sum);
      }
  }
  return sums;
}

// The matrix in this subgroup's part of the stage, whose first element is at [row, column] of the
// workgroup's tile.
void Tile::FinishMatrix(const Dim& row, const Dim& column) {
  const int lanes = LanesFor(g_.n);
  const Dim part = subgroup_ * (s_.shape.m * s_.stage_pitch());
  const int64_t vectors = int64_t{s_.shape.m} * s_.shape.n / lanes;
  for (int64_t first = 0; first < vectors; first += s_.lanes) {
    const Dims place = Unflatten(lane_ + first, {s_.shape.m, s_.shape.n / lanes});
    const Position i = Guard(m_, row_tile_ * s_.rows + row + place[0], g_.m);
    const Position j = Guard(m_, column_tile_ * s_.columns + column + place[1] * lanes, g_.n);
    Val inside = Both(i.inside, j.inside);
    if (first + s_.lanes > vectors)
      inside = Both(inside, m_.e.Value(lane_ + first) < static_cast<double>(vectors));
    const auto store = [&] {
      Vals parts;
      for (int l = 0; l < lanes; ++l)
        parts.push_back(m_.b.Load(
            stage_, m_.e.Value(part + place[0] * s_.stage_pitch() + place[1] * lanes + l)));
      const Val v = lanes == 1 ? parts[0] : m_.b.Pack(kF32.Lanes(lanes), parts);
      FinishPiece(m_, g_, piece_, {batch_, i.at, j.at, 0}, v, lanes);
    };
    IfInside(m_.b, inside, store);
  }
}

void Tile::Finish(const Vals& sums) {
  const Dim part = subgroup_ * (s_.shape.m * s_.stage_pitch());
  for (int64_t i = 0; i < t_.rows; ++i)
    for (int64_t j = 0; j < t_.columns; ++j) {
      if (i + j > 0) m_.b.Barrier();  // the last matrix has been read
      m_.b.MatrixStore(stage_, m_.e.Value(part), m_.b.Int(s_.stage_pitch()),
                       sums[static_cast<size_t>(i * t_.columns + j)]);
      m_.b.Barrier();
      FinishMatrix(first_row_ + i * s_.shape.m, first_column_ + j * s_.shape.n);
    }
}

void Tile::Run(const Dim& at) {
  Builder& b = m_.b;
  const Dims tile = Unflatten(at, {t_.pieces, g_.batch, rows_.count(), columns_.count()});
  piece_.at = tile[0], batch_ = tile[1], row_tile_ = tile[2], column_tile_ = tile[3];
  local_ = m_.e.Coordinate(b.Builtin(BuiltinKind::kLocalX), s_.threads - 1);
  lane_ = m_.e.Coordinate(b.Builtin(BuiltinKind::kLane), s_.lanes - 1);
  subgroup_ = m_.e.Coordinate(b.Builtin(BuiltinKind::kSubgroup), s_.subgroups - 1);
  first_row_ = FloorDiv(subgroup_, t_.subgroup_columns) * (t_.rows * s_.shape.m);
  first_column_ = Mod(subgroup_, t_.subgroup_columns) * (t_.columns * s_.shape.n);
  const Type sum = Type::Matrix(DType::kF32, MatrixUse::kAccumulator, s_.shape.m, s_.shape.n);
  const Vals zeros(static_cast<size_t>(t_.rows * t_.columns), b.Literal(sum, 0));
  const Dim slices = piece_.steps(g_.k);
  Finish(b.For({b.Int(0), b.Scalar(slices), b.Int(1)}, zeros, [&](Val i, Vals sums) {
    const Dim k = piece_.K(g_.k, m_.e.Coordinate(i, LastIndex(slices)));
    Fill(a_, k);
    Fill(b_, k);
    b.Barrier();
    sums = Multiply(std::move(sums));
    b.Barrier();
    return sums;
  }));
}

absl::StatusOr<Program> Emit(const Region& r, const void* p) {
  const auto& t = Parameters<MatmulMatrix>(p);
  const Gemm g = *GemmOf(r);
  const Sizes s(t, r.caps());
  Program out{.kernel = fmt::format("matmul_matrix_{}x{}x{}{}", s.rows, s.columns, s.depth,
                                    PiecesText(t.pieces)),
              .launches = {},
              .scratch_bytes = {}};
  Emission m(r, out.kernel, {static_cast<uint32_t>(s.threads), 1, 1});
  m.launch.kernel.subgroup = static_cast<uint32_t>(s.lanes);
  Tile tile(m, g, t, s);
  m.Guarded(m.Workgroups(tile.count()), [&](const Dim& at) { tile.Run(at); });
  out.launches.push_back(std::move(m).Take());
  AddPieces(r, g, t.pieces, out);
  return out;
}

}  // namespace

const Schedule kMatmulMatrix{.name = "matmul_matrix",
                             .parameters = MatmulMatrix::kFields,
                             .takes = &Takes,
                             .defaults = &Defaults,
                             .fits = &Fits,
                             .emit = &Emit};

}  // namespace forge::codegen
