// SPDX-License-Identifier: Apache-2.0
// Matrix product by workgroups: a tile of C in registers, slices of A and B in shared memory. What
// suits GPUs, whose shared memory and barriers are cheap.
#include "codegen/literal.h"
#include "codegen/schedules/list.h"
#include "codegen/schedules/matmul_split.h"

namespace forge::codegen {
namespace {

using ir::Dim;
using ir::Dims;

// Invocations of a workgroup, 8 along rows by 16 along columns: what every device allows.
constexpr int64_t kRowThreads = 8, kColumnThreads = 16;
constexpr int64_t kThreads = kRowThreads * kColumnThreads;

struct MatmulShared {
  int64_t rows = 64, columns = 64, depth = 16;  // of C and k, to a workgroup
  int64_t pieces = 1;                           // that k is cut into
  bool dots = false;                            // of four bytes at once
  static constexpr Field kFields[] = {
      FieldOf<&MatmulShared::rows>("rows", "Rows of C to a workgroup.", "16|32|64"),
      FieldOf<&MatmulShared::columns>("columns", "Columns of C to a workgroup.", "16|32|64"),
      FieldOf<&MatmulShared::depth>("depth", "Steps of k in shared memory.", "8|16|32"),
      FieldOf<&MatmulShared::pieces>("pieces", "That k is cut into.", "1|2|4|8"),
      FieldOf<&MatmulShared::dots>("dots", "By dot products of four bytes.")};
};

// Four steps of k to a word of shared memory.
constexpr int64_t kBytes = 4;

bool OfBytes(const Gemm& g) { return BitWidth(g.a_type) == 8 && BitWidth(g.b_type) == 8; }

bool Takes(const Region& r) { return GemmOf(r).has_value(); }

// Rows of a slice are one element apart from a multiple of the banks, so that columns spread.
int64_t Pitch(int64_t length) { return length + 4; }

int64_t SharedBytes(const MatmulShared& t, DType dtype) {
  const int64_t elements = (Pitch(t.rows) + Pitch(t.columns)) * t.depth;
  return t.dots ? elements : elements * BitWidth(ComputeType(dtype)) / 8;
}

MatmulShared TilesFor(const Gemm& g, const Caps& caps) {
  MatmulShared t;
  if (caps.few_registers()) t.rows = t.columns = 32;
  while (t.rows > 16 && g.m.max() <= t.rows / 2) t.rows /= 2;
  while (t.columns > 16 && g.n.max() <= t.columns / 2) t.columns /= 2;
  t.dots = OfBytes(g) && caps.int_dot_accelerated;
  if (t.dots) t.depth = 32;
  if (g.k.max() <= 8 || BitWidth(g.dtype) > 32) t.depth = 8;
  return t;
}

std::shared_ptr<void> Defaults(const Region& r) {
  const Gemm g = *GemmOf(r);
  MatmulShared t = TilesFor(g, r.caps());
  t.pieces = PiecesFor(g, t.rows, t.columns, t.depth);
  return Boxed(t);
}

// Smaller products are over before shared memory is filled.
constexpr int64_t kLeastSide = 16, kLeastDepth = 16;

Verdict Fits(const Region& r, const void* p) {
  const auto& t = Parameters<MatmulShared>(p);
  const Caps& caps = r.caps();
  const Gemm g = *GemmOf(r);
  if (caps.runs_on_cpu) return Verdict::No("barriers are dear on this device");
  if (g.m.max() < kLeastSide || g.n.max() < kLeastSide || g.k.max() < kLeastDepth)
    return Verdict::No("the product is small");
  if (t.dots && (!OfBytes(g) || !caps.int_dot))
    return Verdict::No("it has no dots of its operands");
  if (SharedBytes(t, g.dtype) > caps.max_shared_bytes)
    return Verdict::No("too little shared memory");
  if (Verdict v = PiecesFit(g, t.pieces, caps); !v) return v;
  return WorkgroupFits(kThreads, caps);
}

class Tile {
 public:
  Tile(Emission& m, const Gemm& g, const MatmulShared& t);
  Dim count() const { return g_.batch * rows_.count() * columns_.count() * t_.pieces; }
  void Run(const Dim& at);

 private:
  // One operand's slice in shared memory, [depth][Pitch(length)]; of words, [depth / 4].
  struct Slice {
    uint16_t view;
    bool is_a;
    int64_t length;  // of C's axis
    int lanes;       // loaded at once, along k or along that axis
    bool lanes_on_k;
    bool along_k;  // neighbouring invocations load neighbours along k
  };
  Slice NewSlice(bool is_a, int64_t length);
  void Fill(const Slice& slice, const Dim& k);
  Val Fetch(const Slice& slice, const Dim& along, const Dim& k);
  Val FetchWord(const Slice& slice, const Dim& along, const Dim& k);
  void Put(const Slice& slice, Val value, const Dim& along, const Dim& k);
  Val MultiplyAdd(Val a, Val b, Val sum);
  Vals Multiply(Vals sums);
  void Finish(const Vals& sums);

  int64_t own_rows() const { return t_.rows / kRowThreads; }
  int64_t slice_rows() const { return t_.depth / (t_.dots ? kBytes : 1); }
  int64_t own_columns() const { return t_.columns / kColumnThreads; }

  Emission& m_;
  const Gemm& g_;
  const MatmulShared& t_;
  TiledAxis rows_, columns_;
  Piece piece_;
  Type type_;
  Slice a_, b_;
  Dim batch_, row_tile_, column_tile_, local_, row_thread_, column_thread_;
};

Tile::Tile(Emission& m, const Gemm& g, const MatmulShared& t)
    : m_(m),
      g_(g),
      t_(t),
      rows_{g.m, t.rows},
      columns_{g.n, t.columns},
      piece_{t.pieces, t.depth},
      type_(AccumulatorOf(g.dtype)),
      a_(NewSlice(true, t.rows)),
      b_(NewSlice(false, t.columns)) {}

Tile::Slice Tile::NewSlice(bool is_a, int64_t length) {
  const int lanes_k = is_a ? g_.a_lanes_k : g_.b_lanes_k;
  const bool lanes_on_k = is_a || t_.dots || lanes_k > g_.b_lanes_n;
  const int lanes = t_.dots      ? (lanes_k == kBytes ? lanes_k : 1)
                    : lanes_on_k ? lanes_k
                                 : g_.b_lanes_n;
  return {.view = m_.b.AddView({.name = is_a ? "a" : "b",
                                .space = Space::kShared,
                                .elem = t_.dots ? kU32 : type_,
                                .extent = static_cast<uint32_t>(slice_rows() * Pitch(length)),
                                .reads = true,
                                .writes = true}),
          .is_a = is_a,
          .length = length,
          .lanes = lanes,
          .lanes_on_k = lanes_on_k,
          .along_k = lanes_on_k && (!t_.dots || lanes > 1)};
}

// Neighbours of an operand, 0 where they lie outside.
Val Tile::Fetch(const Slice& slice, const Dim& along, const Dim& k) {
  const Dim& extent = slice.is_a ? g_.m : g_.n;
  const Dim first = (slice.is_a ? row_tile_ * t_.rows : column_tile_ * t_.columns) + along;
  // Vectors are whole: they are inside when their first element is.
  const Position p = Guard(m_, first, extent), q = Guard(m_, k, g_.k);
  Gemm::At at{batch_, p.at, p.at, q.at};
  (slice.lanes_on_k ? at.k : at.n) = (slice.lanes_on_k ? q : p).at + m_.e.Lane(slice.lanes);
  Val v = slice.is_a ? g_.A(m_, at, slice.lanes) : g_.B(m_, at, slice.lanes);
  return Where(Both(p.inside, q.inside), v, 0);
}

// Four steps of k as bytes, the first in the lowest.
Val Tile::FetchWord(const Slice& slice, const Dim& along, const Dim& k) {
  Vals bytes;
  for (int i = 0; i < kBytes; i += slice.lanes) Unpack(Fetch(slice, along, k + i), bytes);
  Val word;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const Val byte = (bitcast(bytes[i], DType::kU32) & 255.0) << (8.0 * static_cast<double>(i));
    word = i == 0 ? byte : word | byte;
  }
  return word;
}

void Tile::Put(const Slice& slice, Val value, const Dim& along, const Dim& k) {
  if (t_.dots)
    return m_.b.Store(slice.view, m_.e.Value(FloorDiv(k, kBytes) * Pitch(slice.length) + along),
                      value);
  for (int i = 0; i < slice.lanes; ++i) {
    const Dim row = k + (slice.lanes_on_k ? i : 0), column = along + (slice.lanes_on_k ? 0 : i);
    m_.b.Store(slice.view, m_.e.Value(row * Pitch(slice.length) + column),
               slice.lanes == 1 ? value : m_.b.Extract(value, i));
  }
}

// Copies a slice from k on; neighbouring invocations load neighbouring elements.
void Tile::Fill(const Slice& slice, const Dim& k) {
  const int64_t each = t_.dots ? kBytes : slice.lanes;  // elements to an invocation
  const int64_t steps = slice.lanes_on_k ? each : 1, columns = slice.lanes_on_k ? 1 : each;
  const Dim length = slice.length / columns, depth = t_.depth / steps;
  const int64_t vectors = slice.length * t_.depth / each;
  for (int64_t first = 0; first < vectors; first += kThreads) {
    const Dim at = local_ + first;
    const Dims place =
        slice.along_k ? Unflatten(at, {length, depth}) : Unflatten(at, {depth, length});
    const Dim along = place[slice.along_k ? 0 : 1] * columns;
    const Dim step = place[slice.along_k ? 1 : 0] * steps;
    auto copy = [&] {
      Put(slice, t_.dots ? FetchWord(slice, along, k + step) : Fetch(slice, along, k + step), along,
          step);
    };
    if (first + kThreads <= vectors)
      copy();
    else
      m_.b.If(m_.e.Value(at) < static_cast<double>(vectors), copy);
  }
}

Val Tile::MultiplyAdd(Val a, Val b, Val sum) {
  if (!t_.dots) return fma(a, b, sum);
  const bool signed_a = IsSigned(g_.a_type), signed_b = IsSigned(g_.b_type);
  if (signed_a != signed_b)
    return m_.b.Dot4(DotKind::kMixed, signed_a ? a : b, signed_a ? b : a, sum);
  if (signed_a) return m_.b.Dot4(DotKind::kSigned, a, b, sum);
  return bitcast(m_.b.Dot4(DotKind::kUnsigned, a, b, bitcast(sum, DType::kU32)), type_.elem);
}

Vals Tile::Multiply(Vals sums) {
  const Dim row = row_thread_ * own_rows(), column = column_thread_ * own_columns();
  for (int64_t k = 0; k < slice_rows(); ++k) {
    Vals a, b;
    for (int64_t i = 0; i < own_rows(); ++i)
      a.push_back(m_.b.Load(a_.view, m_.e.Value(row + k * Pitch(t_.rows) + i)));
    for (int64_t j = 0; j < own_columns(); ++j)
      b.push_back(m_.b.Load(b_.view, m_.e.Value(column + k * Pitch(t_.columns) + j)));
    for (size_t i = 0; i < a.size(); ++i)
      for (size_t j = 0; j < b.size(); ++j) {
        Val& sum = sums[i * b.size() + j];
        sum = MultiplyAdd(a[i], b[j], sum);
      }
  }
  return sums;
}

void Tile::Finish(const Vals& sums) {
  const int lanes = own_columns() == 4 && g_.n.divisor() % 4 == 0 ? 4 : 1;
  for (int64_t i = 0; i < own_rows(); ++i)
    for (int64_t j = 0; j < own_columns(); j += lanes) {
      const Position row = Guard(m_, row_tile_ * t_.rows + row_thread_ * own_rows() + i, g_.m);
      const Position column =
          Guard(m_, column_tile_ * t_.columns + column_thread_ * own_columns() + j, g_.n);
      const auto part = std::span(sums).subspan(static_cast<size_t>(i * own_columns() + j),
                                                static_cast<size_t>(lanes));
      auto store = [&] {
        const Val v = lanes == 1 ? part[0] : m_.b.Pack(type_.Lanes(lanes), part);
        FinishPiece(m_, g_, piece_, {batch_, row.at, column.at, 0}, v, lanes);
      };
      IfInside(m_.b, Both(row.inside, column.inside), store);
    }
}

void Tile::Run(const Dim& at) {
  const Dims tile = Unflatten(at, {t_.pieces, g_.batch, rows_.count(), columns_.count()});
  piece_.at = tile[0], batch_ = tile[1], row_tile_ = tile[2], column_tile_ = tile[3];
  local_ = m_.e.Coordinate(m_.b.Builtin(BuiltinKind::kLocalX), kThreads - 1);
  row_thread_ = FloorDiv(local_, kColumnThreads), column_thread_ = Mod(local_, kColumnThreads);
  Builder& b = m_.b;
  const Vals zeros(static_cast<size_t>(own_rows() * own_columns()), b.Literal(type_, 0));
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

Launch EmitTiles(const Region& r, const Gemm& g, const MatmulShared& t, const std::string& name) {
  Emission m(r, name, {static_cast<uint32_t>(kThreads), 1, 1});
  Tile tile(m, g, t);
  m.Guarded(m.Workgroups(tile.count()), [&](const Dim& at) { tile.Run(at); });
  return std::move(m).Take();
}

absl::StatusOr<Program> Emit(const Region& r, const void* p) {
  const auto& t = Parameters<MatmulShared>(p);
  const Gemm g = *GemmOf(r);
  Program out{.kernel = fmt::format("matmul_shared_{}x{}x{}{}", t.rows, t.columns, t.depth,
                                    PiecesText(t.pieces) + (t.dots ? "_dots" : "")),
              .launches = {},
              .scratch_bytes = {}};
  out.launches.push_back(EmitTiles(r, g, t, out.kernel));
  AddPieces(r, g, t.pieces, out);
  return out;
}

}  // namespace

Launch EmitSharedProduct(const Region& r, const Gemm& g, const std::string& name) {
  return EmitTiles(r, g, TilesFor(g, r.caps()), name);
}

const Schedule kMatmulShared{.name = "matmul_shared",
                             .parameters = MatmulShared::kFields,
                             .takes = &Takes,
                             .defaults = &Defaults,
                             .fits = &Fits,
                             .emit = &Emit};

}  // namespace forge::codegen
