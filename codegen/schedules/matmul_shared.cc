// SPDX-License-Identifier: Apache-2.0
// Matrix product by workgroups: a tile of C in registers, slices of A and B in shared memory. What
// suits GPUs, whose shared memory and barriers are cheap.
#include "codegen/literal.h"
#include "codegen/schedules/list.h"
#include "codegen/schedules/matmul_slices.h"

namespace forge::codegen {
namespace {

using ir::Dim;
using ir::Dims;

// Invocations of a workgroup, 8 along rows by 16 along columns: what every device allows.
constexpr int64_t kRowThreads = 8, kColumnThreads = 16;
constexpr int64_t kThreads = kRowThreads * kColumnThreads;

struct MatmulShared {
  int64_t rows = 64, columns = 64, depth = 16;  // of C and k, to a workgroup
  int64_t workgroups = 0;                       // that share all tiles; 0: one for each
  int64_t stages = 1;                           // of slices
  bool dots = false;                            // of four bytes at once
  static constexpr Field kFields[] = {
      FieldOf<&MatmulShared::rows>("rows", "Rows of C to a workgroup.", "16|32|64"),
      FieldOf<&MatmulShared::columns>("columns", "Columns of C to a workgroup.", "16|32|64"),
      FieldOf<&MatmulShared::depth>("depth", "Steps of k in shared memory.", "8|16|32"),
      FieldOf<&MatmulShared::workgroups>("workgroups", "That share all tiles; 0: one for each.",
                                         "0|32|64|128|256"),
      FieldOf<&MatmulShared::stages>("stages", "Slices in shared memory at once.", "1|2"),
      FieldOf<&MatmulShared::dots>("dots", "By dot products of four bytes.")};
};

// Four steps of k to a word of shared memory.
constexpr int64_t kBytes = 4;

bool Takes(const Region& r) { return GemmOf(r).has_value(); }

// Rows of a slice are one element apart from a multiple of the banks, so that columns spread.
int64_t Pitch(int64_t length) { return length + 4; }

int64_t SharedBytes(const MatmulShared& t, DType dtype) {
  const int64_t elements = t.stages * (Pitch(t.rows) + Pitch(t.columns)) * t.depth;
  return t.dots ? elements : elements * BitWidth(ComputeType(dtype)) / 8;
}

MatmulShared TilesFor(const Gemm& g, const Caps& caps) {
  MatmulShared t;
  if (caps.few_registers()) t.rows = t.columns = 32;
  while (t.rows > 16 && g.m.max() <= t.rows / 2) t.rows /= 2;
  while (t.columns > 16 && g.n.max() <= t.columns / 2) t.columns /= 2;
  t.dots = DotsAreQuick(g, caps);
  if (t.dots) t.depth = 32;
  if (g.k.max() <= 8 || BitWidth(g.dtype) > 32) t.depth = 8;
  return t;
}

Tiling TilingOf(const Gemm& g, const MatmulShared& t) {
  return {g, t.rows, t.columns, t.depth, t.workgroups};
}

MatmulShared Defaults(const Region& r) {
  const Gemm g = *GemmOf(r);
  MatmulShared t = TilesFor(g, r.caps());
  t.workgroups = TilingOf(g, t).SuggestWorkgroups();
  return t;
}

// Smaller products are over before shared memory is filled.
constexpr int64_t kLeastSide = 16, kLeastDepth = 16;

Verdict Fits(const Region& r, const MatmulShared& t) {
  const Caps& caps = r.caps();
  const Gemm g = *GemmOf(r);
  if (caps.runs_on_cpu) return Verdict::No("barriers are dear on this device");
  if (g.m.max() < kLeastSide || g.n.max() < kLeastSide || g.k.max() < kLeastDepth)
    return Verdict::No("the product is small");
  if (t.dots && (!OfBytes(g) || !caps.int_dot))
    return Verdict::No("it has no dots of its operands");
  if (SharedBytes(t, g.dtype) > caps.max_shared_bytes)
    return Verdict::No("too little shared memory");
  if (Verdict v = TilingOf(g, t).Fits(r); !v) return v;
  if (Verdict v = StagesFit(g, t.stages); !v) return v;
  return WorkgroupFits(kThreads, caps);
}

class Tile {
 public:
  Tile(Emission& m, const Gemm& g, const MatmulShared& t);
  Dim count() const { return tiling_.workgroups(); }
  void Run(const Dim& at);

 private:
  // One operand's slice in shared memory, [stage][depth][Pitch(length)]; of words, [depth / 4].
  struct Shared {
    Slice slice;
    uint16_t view;
  };
  Shared NewShared(bool is_a, int64_t length);
  SliceCopy Copy(const Shared& s);
  Vals Fetch(const Slice& slice, const Dim& along, const Dim& k);
  Val MultiplyAdd(Val a, Val b, Val sum);
  Vals Multiply(Vals sums, const Dim& stage);
  void RunPart(const SliceLoop& loop, const TilePart& part);
  void Finish(const TilePart& part, const Vals& sums);

  int64_t own_rows() const { return t_.rows / kRowThreads; }
  int64_t slice_rows() const { return t_.depth / (t_.dots ? kBytes : 1); }
  int64_t own_columns() const { return t_.columns / kColumnThreads; }

  Emission& m_;
  const Gemm& g_;
  const MatmulShared& t_;
  Tiling tiling_;
  Type type_;
  Shared a_, b_;
  Dim batch_, row_tile_, column_tile_, local_, row_thread_, column_thread_;
};

Tile::Tile(Emission& m, const Gemm& g, const MatmulShared& t)
    : m_(m),
      g_(g),
      t_(t),
      tiling_(TilingOf(g, t)),
      type_(AccumulatorOf(g.dtype)),
      a_(NewShared(true, t.rows)),
      b_(NewShared(false, t.columns)) {}

Tile::Shared Tile::NewShared(bool is_a, int64_t length) {
  const int64_t elements = t_.stages * slice_rows() * Pitch(length);
  return {.slice = Slice(g_, is_a, length),
          .view = m_.b.AddView({.name = is_a ? "a" : "b",
                                .space = Space::kShared,
                                .elem = t_.dots ? kU32 : type_,
                                .extent = static_cast<uint32_t>(elements),
                                .reads = true,
                                .writes = true})};
}

// Four steps of k as bytes of a word, the first in the lowest.
Val Word(const Vals& bytes) {
  Val word;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const Val byte = (bitcast(bytes[i], DType::kU32) & 255.0) << (8.0 * static_cast<double>(i));
    word = i == 0 ? byte : word | byte;
  }
  return word;
}

// What one invocation loads: a vector; of words, one for each column.
Vals Tile::Fetch(const Slice& slice, const Dim& along, const Dim& k) {
  const Dim at = (slice.is_a ? row_tile_ * t_.rows : column_tile_ * t_.columns) + along;
  if (!t_.dots) return {slice.Load(m_, batch_, at, k)};
  Vals words;
  for (const Vals& bytes : slice.LoadAlongK(m_, batch_, at, k, kBytes))
    words.push_back(Word(bytes));
  return words;
}

SliceCopy Tile::Copy(const Shared& s) {
  const auto fetch = [this, &s](const Dim& along, const Dim& k) {
    return Fetch(s.slice, along, k);
  };
  const bool on_k = s.slice.lanes_on_k && !t_.dots;  // elements of a vector
  const auto put = [this, &s, on_k](const Vals& fetched, const Dim& stage, const Dim& along,
                                    const Dim& k) {
    Vals elements;
    for (const Val& v : fetched) Unpack(v, elements);
    const Dim first = stage * slice_rows() + FloorDiv(k, t_.depth / slice_rows());
    for (size_t n = 0; n < elements.size(); ++n) {
      const auto i = static_cast<int64_t>(n);
      const Dim row = first + (on_k ? i : 0), column = along + (on_k ? 0 : i);
      m_.b.Store(s.view, m_.e.Value(row * Pitch(s.slice.length) + column), elements[n]);
    }
  };
  const int64_t steps = t_.dots ? kBytes : on_k ? s.slice.lanes : 1;
  return {.slice = s.slice, .steps = steps, .fetch = fetch, .put = put};
}

Val Tile::MultiplyAdd(Val a, Val b, Val sum) {
  if (!t_.dots) return fma(a, b, sum);
  const bool signed_a = IsSigned(g_.a_type), signed_b = IsSigned(g_.b_type);
  if (signed_a != signed_b)
    return m_.b.Dot4(DotKind::kMixed, signed_a ? a : b, signed_a ? b : a, sum);
  if (signed_a) return m_.b.Dot4(DotKind::kSigned, a, b, sum);
  return bitcast(m_.b.Dot4(DotKind::kUnsigned, a, b, bitcast(sum, DType::kU32)), type_.elem);
}

Vals Tile::Multiply(Vals sums, const Dim& stage) {
  const Dim row = row_thread_ * own_rows(), column = column_thread_ * own_columns();
  for (int64_t step = 0; step < slice_rows(); ++step) {
    const Dim k = stage * slice_rows() + step;
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

void Tile::Finish(const TilePart& part, const Vals& sums) {
  const int lanes = own_columns() == 4 && g_.n.divisor() % 4 == 0 ? 4 : 1;
  for (int64_t i = 0; i < own_rows(); ++i)
    for (int64_t j = 0; j < own_columns(); j += lanes) {
      const Dim in_row = row_thread_ * own_rows() + i,
                in_column = column_thread_ * own_columns() + j;
      const Position row = Guard(m_, row_tile_ * t_.rows + in_row, g_.m);
      const Position column = Guard(m_, column_tile_ * t_.columns + in_column, g_.n);
      const auto own = std::span(sums).subspan(static_cast<size_t>(i * own_columns() + j),
                                               static_cast<size_t>(lanes));
      auto store = [&] {
        const Val v = lanes == 1 ? own[0] : m_.b.Pack(type_.Lanes(lanes), own);
        tiling_.Store(m_, part, in_row, in_column, {batch_, row.at, column.at, 0}, v);
      };
      IfInside(m_.b, Both(row.inside, column.inside), store);
    }
}

void Tile::RunPart(const SliceLoop& loop, const TilePart& part) {
  batch_ = part.batch, row_tile_ = part.row, column_tile_ = part.column;
  const Vals zeros(static_cast<size_t>(own_rows() * own_columns()), m_.b.Literal(type_, 0));
  const Vals sums = loop.Run(part, zeros);
  tiling_.Finish(m_, part, [&](const TilePart& how) { Finish(how, sums); });
}

void Tile::Run(const Dim& at) {
  local_ = m_.e.Coordinate(m_.b.Builtin(BuiltinKind::kLocalX), kThreads - 1);
  row_thread_ = FloorDiv(local_, kColumnThreads), column_thread_ = Mod(local_, kColumnThreads);
  const SliceLoop loop{
      .m = m_,
      .threads = kThreads,
      .local = local_,
      .depth = t_.depth,
      .stages = t_.stages,
      .copies = {Copy(a_), Copy(b_)},
      .multiply = [this](Vals sums, const Dim& stage) { return Multiply(std::move(sums), stage); }};
  tiling_.ForParts(m_, at, [&](const TilePart& part) { RunPart(loop, part); });
}

Launch EmitTiles(const Region& r, const Gemm& g, const MatmulShared& t, const std::string& name) {
  Emission m(r, name, {static_cast<uint32_t>(kThreads), 1, 1});
  Tile tile(m, g, t);
  m.Guarded(m.Workgroups(tile.count()), [&](const Dim& at) { tile.Run(at); });
  return std::move(m).Take();
}

Program Emit(const Region& r, const MatmulShared& t) {
  const Gemm g = *GemmOf(r);
  Program out{.kernel = fmt::format(
                  "matmul_shared_{}x{}x{}{}", t.rows, t.columns, t.depth,
                  TilingOf(g, t).Text() + StagesText(t.stages) + (t.dots ? "_dots" : ""))};
  out.launches.push_back(EmitTiles(r, g, t, out.kernel));
  TilingOf(g, t).AddUp(r, out);
  return out;
}

}  // namespace

Launch EmitSharedProduct(const Region& r, const Gemm& g, const std::string& name) {
  return EmitTiles(r, g, TilesFor(g, r.caps()), name);
}

const Schedule kMatmulShared =
    ScheduleOf<MatmulShared, Takes, Defaults, Fits, Emit>("matmul_shared");

}  // namespace forge::codegen
