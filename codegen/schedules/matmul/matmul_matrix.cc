// SPDX-License-Identifier: Apache-2.0
// Matrix product by cooperative matrices, of f16 or of bytes: slices of A and B in shared memory, a
// grid of matrices of C in the registers of each subgroup. Sums have 32 bits; what leaves them goes
// through shared memory, where its elements have places that an epilogue can be told.
#include <algorithm>

#include "codegen/region/storage.h"
#include "codegen/schedules/matmul/matmul_slices.h"

namespace forge::codegen {
namespace {
namespace matmul_matrix {

using ir::Dim;
using ir::Dims;

struct MatmulMatrix {
  int64_t subgroup_rows = 2, subgroup_columns = 4;  // of a workgroup
  int64_t rows = 2, columns = 2;                    // matrices of C, to a subgroup
  int64_t depth = 2;                                // matrices along k in shared memory
  int64_t workgroups = 0;                           // that share all tiles; 0: one for each
  int64_t stages = 1;                               // of slices
  int64_t group = 1;                                // of rows of tiles, taken column by column
  bool in_registers = false;                        // what leaves the sums is computed there
  static constexpr Field kFields[] = {
      FieldOf<&MatmulMatrix::subgroup_rows>("subgroup_rows", "Subgroups along rows of C.", "1|2|4"),
      FieldOf<&MatmulMatrix::subgroup_columns>("subgroup_columns", "Subgroups along its columns.",
                                               "1|2|4"),
      FieldOf<&MatmulMatrix::rows>("rows", "Matrices along rows, to a subgroup.", "1|2|4"),
      FieldOf<&MatmulMatrix::columns>("columns", "Matrices along columns, to a subgroup.",
                                      "1|2|4|8"),
      FieldOf<&MatmulMatrix::depth>("depth", "Matrices along k in shared memory.", "1|2|4"),
      FieldOf<&MatmulMatrix::workgroups>("workgroups", "That share all tiles; 0: one for each.",
                                         "0|32|64|128|256"),
      FieldOf<&MatmulMatrix::stages>("stages", "Slices in shared memory at once.", "1|2|3|4|5"),
      FieldOf<&MatmulMatrix::in_registers>("in_registers",
                                           "Sums leave matrices without shared memory."),
      FieldOf<&MatmulMatrix::group>("group", "Rows of tiles, taken column by column.", "1|4|16")};
};

// Units that take no more bytes at once than halves multiply them no faster than dot products do.
bool DotsAreAsQuick(const Gemm& g, const MatrixShape& shape, const Caps& caps) {
  const MatrixShape* halves = caps.LargestMatrix(DType::kF16, DType::kF16);
  return DotsAreQuick(g.a.type, g.b.type, caps) && halves != nullptr && shape.k <= halves->k;
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
        threads(lanes * t.subgroup_rows * t.subgroup_columns),
        lines(BitWidth(matrix.a) == 16 ? Lines::kAsLoaded : Lines::kAlongK),
        rows(t.subgroup_rows * t.rows * shape.m),
        columns(t.subgroup_columns * t.columns * shape.n),
        depth(t.depth * shape.k),
        stages(t.stages),
        result_elements(t.in_registers ? 0 : threads / lanes * shape.m * result_pitch()) {}
  int64_t result_pitch() const { return Pitch(shape.n); }
  bool BySteps(const Factor& f) const { return ByStepsOf(f, lines, kVector); }
  // Elements from line to line of a slice of this length: they begin in different banks.
  int64_t PitchOf(const Factor& f, int64_t length) const {
    const int64_t unit = kRowBytes * 8 / BitWidth(shape.a), line = BySteps(f) ? length : depth;
    return (line + unit - 1) / unit * unit + unit;
  }
  SharedArray SliceOf(const Factor& f, DType elem, int64_t length) const {
    const int64_t count = BySteps(f) ? depth : length;
    return {Type{InMemory(elem)}.Lanes(kVector), stages * count * PitchOf(f, length) / kVector};
  }
  SharedArray SliceOfA(const Gemm& g) const { return SliceOf(g.a, shape.a, rows); }
  SharedArray SliceOfB(const Gemm& g) const { return SliceOf(g.b, shape.b, columns); }
  std::array<SharedArray, 3> Arrays(const Gemm& g) const {
    return {SliceOfA(g), SliceOfB(g), results()};
  }
  SharedArray results() const { return {Type{shape.c}, result_elements}; }
  MatrixShape shape;
  int64_t lanes, threads;        // of a subgroup and of a workgroup
  Lines lines;                   // of slices
  int64_t rows, columns, depth;  // of C and k, to a workgroup
  int64_t stages;
  int64_t result_elements;  // of C, in shared memory
};

std::optional<Gemm> MatrixGemmOf(const Region& r) {
  std::optional<Gemm> g = GemmOf(r);
  const auto of_halves = [&] {
    return g->a.type == g->b.type && (g->a.type == DType::kF16 || g->a.type == DType::kBF16);
  };
  if (g && !of_halves() && !OfBytes(*g)) return std::nullopt;
  return g;
}

Tiling TilingOf(const Gemm& g, const MatmulMatrix& t, const Sizes& s) {
  return {g, {s.rows, s.columns, s.depth, t.workgroups, t.stages, t.group}};
}

Verdict MemoryFits(const Region& r, const Gemm& g, const MatmulMatrix& t, const Sizes& s) {
  const Caps& caps = r.caps();
  if (t.stages <= 2) return WorkgroupFits(s.threads, caps, s.Arrays(g));
  if (Verdict v = CopiesAsync(r, g); !v) return v;
  return WorkgroupFits(s.threads, caps, s.Arrays(g), caps.most_shared_bytes());
}

// 128 x 128 of C by four subgroups: each fetches half as much for its sums as from half of the
// tile, 0.52 of the time for 4096 x 4096 x 4096 on an H200 with Vulkan. There single elements of
// matrices took 1.05 to 3 times as long to leave them as whole matrices through shared memory.
MatmulMatrix LargeTile(MatmulMatrix t, const MatrixShape& shape, const Caps& caps) {
  constexpr int64_t kOfSubgroup = 64;
  t.in_registers = caps.matrix_elements && caps.elements_together > 1;
  t.subgroup_rows = t.subgroup_columns = 2;
  t.rows = kOfSubgroup / shape.m, t.columns = kOfSubgroup / shape.n;
  t.depth = std::max(kDepth / shape.k, 1);
  return t;
}

// Narrow subgroups have no registers for so many sums; few tiles leave cores without work.
bool UsesLargeTile(const Region& r, const Gemm& g, const MatmulMatrix& t,
                   const MatrixShape& shape) {
  constexpr int64_t kManyTiles = 256;
  const bool halves = BitWidth(shape.a) == 16;
  if (!halves || r.caps().matrix_subgroup_size() < 32) return false;
  const Sizes s(t, shape, r.caps());
  return MemoryFits(r, g, t, s) && TilingOf(g, t, s).workgroups().min() >= kManyTiles;
}

MatmulMatrix Defaults(const Region& r, const Gemm& g) {
  MatmulMatrix t;
  const MatrixShape* shape = r.caps().LargestMatrix(g.a.type, g.b.type);
  if (shape == nullptr) return t;
  t.in_registers = r.caps().matrix_elements;
  const MatmulMatrix large = LargeTile(t, *shape, r.caps());
  if (UsesLargeTile(r, g, large, *shape)) {
    t = large;
    t.group = TilingOf(g, t, Sizes(t, *shape, r.caps())).SuggestGroup(r);
    return t;
  }
  while (t.subgroup_columns > 1 && !WorkgroupFits(Sizes(t, *shape, r.caps()).threads, r.caps()))
    t.subgroup_columns /= 2;
  const auto shrink = [](int64_t& tiles, int64_t& subgroups, int64_t size, int64_t extent) {
    while (tiles > 1 && extent <= tiles * subgroups * size / 2) tiles /= 2;
    while (subgroups > 1 && extent <= tiles * subgroups * size / 2) subgroups /= 2;
  };
  shrink(t.rows, t.subgroup_rows, shape->m, g.m().max());
  shrink(t.columns, t.subgroup_columns, shape->n, g.n().max());
  // Lanes of narrow subgroups hold so much of a matrix that deeper slices spill.
  if (r.caps().matrix_subgroup_size() >= 32) t.depth = std::clamp(kDepth / shape->k, 1, 4);
  while (t.depth > 1 &&
         ((t.depth / 2) * shape->k >= g.k.max() ||
          SharedBytes(Sizes(t, *shape, r.caps()).Arrays(g)) > r.caps().max_shared_bytes))
    t.depth /= 2;
  const Sizes sizes(t, *shape, r.caps());
  t.workgroups = TilingOf(g, t, sizes).SuggestWorkgroups();
  t.group = TilingOf(g, t, sizes).SuggestGroup(r);
  return t;
}

Verdict Fits(const Region& r, const Gemm& g, const MatmulMatrix& t) {
  const Caps& caps = r.caps();
  const MatrixShape* shape = caps.LargestMatrix(g.a.type, g.b.type);
  if (shape == nullptr) return Verdict::No("the device has no such matrices");
  if (caps.runs_on_cpu) return Verdict::No("vectors are quicker on this device");
  if (t.in_registers && !caps.matrix_elements)
    return Verdict::No("the device does not show elements of matrices");
  if (DotsAreAsQuick(g, *shape, caps)) return Verdict::No("dot products are as quick");
  const Sizes s(t, *shape, caps);
  if (g.m().max() < s.shape.m || g.n().max() < s.shape.n || g.k.max() < s.shape.k)
    return Verdict::No("the product is smaller than a matrix");
  if (Verdict v = TilingOf(g, t, s).Fits(r); !v) return v;
  return MemoryFits(r, g, t, s);
}

class Tile final : public SlicedTile {
 public:
  Tile(const Region& r, const Tiling& tiling, const MatmulMatrix& t, const Sizes& s);

 private:
  Type MatrixOf(const Slice& s) const;
  Val Pack(const Slice& s, const Vals& neighbours) override;
  Val Load(const Slice& s, Val at) override {
    return m_.b.MatrixLoad(s.view, MatrixOf(s), at, m_.b.Int(s.pitch), s.is_a == s.by_steps);
  }
  Val MultiplyAdd(Val a, Val b, Val sum) override { return m_.b.MatrixMulAdd(a, b, sum); }
  void Finish(const TilePart& part, const Vals& sums) override;
  // A matrix whose first element is at [row, column] of the workgroup's tile.
  void FinishInShared(const TilePart& part, const Dim& row, const Dim& column, Val sum);

  const Sizes& s_;
  uint16_t results_ = 0;  // [subgroup][row][result_pitch], unless they stay in registers
};

// Matrices of halves are loaded from lines along either axis, those of bytes along k only.
Tile::Tile(const Region& r, const Tiling& tiling, const MatmulMatrix& t, const Sizes& s)
    : SlicedTile(r, tiling,
                 {.name = fmt::format("matmul_matrix_{}x{}x{}{}", s.rows, s.columns, s.depth,
                                      tiling.Text()),
                  .threads = s.threads,
                  .subgroup = s.lanes,
                  .down = t.subgroup_rows,
                  .across = t.subgroup_columns,
                  .rows = s.shape.m,
                  .columns = s.shape.n,
                  .steps = s.shape.k,
                  .sum = Type::Matrix(s.shape.c, MatrixUse::kAccumulator, s.shape.m, s.shape.n),
                  .packed = kVector,
                  .lines = s.lines}),
      s_(s) {
  Keep(a_, s.SliceOfA(gemm()), s.PitchOf(a_.factor, a_.length) / kVector);
  Keep(b_, s.SliceOfB(gemm()), s.PitchOf(b_.factor, b_.length) / kVector);
  if (s.result_elements > 0) results_ = m_.AddShared("results", s.results());
}

Type Tile::MatrixOf(const Slice& s) const {
  const MatrixShape& shape = s_.shape;
  return s.is_a ? Type::Matrix(shape.a, MatrixUse::kA, shape.m, shape.k)
                : Type::Matrix(shape.b, MatrixUse::kB, shape.k, shape.n);
}

Val Tile::Pack(const Slice& s, const Vals& neighbours) {
  const DType elem = MatrixOf(s).elem;
  const Val all = Packed(neighbours);
  if (elem != DType::kBF16) return m_.b.Convert(all, elem);
  return m_.b.Convert(bitcast(RoundTo(elem, all), DType::kU32) >> 16, DType::kU16);
}

void Tile::FinishInShared(const TilePart& tile_part, const Dim& row, const Dim& column, Val sum) {
  const int lanes = LanesFor(gemm().n());
  const Dim part = own_ * (s_.shape.m * s_.result_pitch());
  const Val stride = m_.b.Int(s_.result_pitch());
  m_.b.MatrixStore(results_, m_.e.Value(part), stride, sum);
  m_.b.Barrier();
  const int64_t vectors = int64_t{s_.shape.m} * s_.shape.n / lanes;
  for (int64_t first = 0; first < vectors; first += s_.lanes) {
    const Dims place = Unflatten(lane_ + first, {s_.shape.m, s_.shape.n / lanes});
    Val inside;
    if (first + s_.lanes > vectors)
      inside = m_.e.Value(lane_ + first) < static_cast<double>(vectors);
    tiling_.Store(m_, tile_part, row + place[0], column + place[1] * lanes, inside, [&] {
      Vals parts;
      for (int l = 0; l < lanes; ++l)
        parts.push_back(m_.b.Load(
            results_, m_.e.Value(part + place[0] * s_.result_pitch() + place[1] * lanes + l)));
      return Packed(parts);
    });
  }
}

void Tile::Finish(const TilePart& tile_part, const Vals& sums) {
  for (int64_t i = 0; i < a_.count; ++i)
    for (int64_t j = 0; j < b_.count; ++j) {
      const Dim row = a_.first + i * a_.apart, column = b_.first + j * b_.apart;
      const Val sum = sums[static_cast<size_t>(i * b_.count + j)];
      if (s_.result_elements == 0) {
        StoreMatrix(tile_part, row, column, sum, m_.region.caps().elements_together);
      } else {
        if (i + j > 0) m_.b.Barrier();  // the last matrix has been read
        FinishInShared(tile_part, row, column, sum);
      }
    }
}

Program Emit(const Region& r, const Gemm& g, const MatmulMatrix& t) {
  const Sizes s(t, *r.caps().LargestMatrix(g.a.type, g.b.type), r.caps());
  const Tiling tiling = TilingOf(g, t, s);
  return tiling.ProgramOf(r, Tile(r, tiling, t, s).Emit());
}

}  // namespace matmul_matrix
}  // namespace

const Schedule kMatmulMatrix =
    ScheduleOn<matmul_matrix::MatmulMatrix, matmul_matrix::MatrixGemmOf, matmul_matrix::Defaults,
               matmul_matrix::Fits, matmul_matrix::Emit>("matmul_matrix");

}  // namespace forge::codegen
