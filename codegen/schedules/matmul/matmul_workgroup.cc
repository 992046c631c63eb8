// SPDX-License-Identifier: Apache-2.0
// Matrix product of halves by matrices that a workgroup holds. A ring of slices is copied past
// registers into shared memory, from where the matrix units read them.
#include "codegen/schedules/matmul/matmul_slices.h"

namespace forge::codegen {
namespace {
namespace matmul_workgroup {

struct MatmulWorkgroup {
  int64_t groups = 2;      // of 128 invocations, each with rows of C of its own
  int64_t columns = 256;   // of C, in a tile
  int64_t stages = 4;      // slices in shared memory
  int64_t workgroups = 0;  // that share all tiles; 0: one for each
  int64_t group = 1;       // of rows of tiles, taken column by column
  static constexpr Field kFields[] = {
      FieldOf<&MatmulWorkgroup::groups>("groups", "Of 128 invocations, with rows of their own.",
                                        "1|2"),
      FieldOf<&MatmulWorkgroup::columns>("columns", "Columns of a tile.", "64|128|256"),
      FieldOf<&MatmulWorkgroup::stages>("stages", "Slices in shared memory at once.", "3|4|5|6"),
      FieldOf<&MatmulWorkgroup::workgroups>("workgroups", "That share all tiles; 0: one for each.",
                                            "0|64|132|264"),
      FieldOf<&MatmulWorkgroup::group>("group", "Rows of tiles, taken column by column.",
                                       "1|4|8|16")};
};

constexpr int64_t kLine = kSwizzledLineBytes / 2;  // halves
constexpr int64_t kDepth = kLine;                  // of a slice
constexpr int kVector = 4;                         // halves in an element of shared memory

const MatrixShape* ShapeOf(const Gemm& g, const Caps& caps) {
  for (const MatrixShape& s : caps.workgroup_matrices)
    if (s.a == g.a.type && s.b == g.b.type) return &s;
  return nullptr;
}

Tiling TilingOf(const Gemm& g, const MatmulWorkgroup& t, const MatrixShape& s) {
  return {g, {t.groups * s.m, t.columns, kDepth, t.workgroups, t.stages, t.group}};
}

SharedArray SliceOf(DType type, int64_t length, int64_t stages) {
  return {Type{InMemory(type)}.Lanes(kVector), stages * length * kDepth / kVector,
          /*swizzled=*/true};
}

MatmulWorkgroup Defaults(const Region& r, const Gemm& g) {
  MatmulWorkgroup t;
  const MatrixShape* shape = ShapeOf(g, r.caps());
  if (shape == nullptr) return t;
  if (g.m().max() <= shape->m) t.groups = 1;
  // Few tiles leave multiprocessors without work.
  constexpr int64_t kManyTiles = 128;
  while (t.columns > kLine &&
         (g.n().max() <= t.columns / 2 || TilingOf(g, t, *shape).workgroups().max() < kManyTiles))
    t.columns /= 2;
  t.workgroups = TilingOf(g, t, *shape).SuggestWorkgroups();
  t.group = TilingOf(g, t, *shape).SuggestGroup(r);
  return t;
}

Verdict Fits(const Region& r, const Gemm& g, const MatmulWorkgroup& t) {
  const Caps& caps = r.caps();
  const MatrixShape* shape = ShapeOf(g, caps);
  if (shape == nullptr) return Verdict::No("workgroups hold no such matrices on the device");
  if (Verdict v = CopiesAsync(r, g); !v) return v;
  if (g.m().max() < shape->m || g.n().max() < kLine || g.k.max() < kDepth)
    return Verdict::No("the product is smaller than a tile");
  const Tiling tiling = TilingOf(g, t, *shape);
  const SharedArray slices[] = {SliceOf(shape->a, tiling.size().rows, t.stages),
                                SliceOf(shape->b, t.columns, t.stages)};
  if (Verdict v = tiling.Fits(r); !v) return v;
  return WorkgroupFits(t.groups * kHoldersOfRows, caps, slices, caps.most_shared_bytes());
}

class Tile final : public SlicedTile {
 public:
  Tile(const Region& r, const Tiling& tiling, const MatrixShape& s);

 private:
  Type MatrixOf(const Slice& s) const;
  Val Pack(const Slice&, const Vals& neighbours) override { return Packed(neighbours); }
  Val Load(const Slice& s, Val at) override {
    return m_.b.MatrixLoad(s.view, MatrixOf(s), at, m_.b.Int(kDepth * s.pitch),
                           s.is_a == s.by_steps);
  }
  Val MultiplyAdd(Val a, Val b, Val sum) override { return m_.b.MatrixMulAdd(a, b, sum); }
  Val Wait(Val sum, int pending) override { return m_.b.MatrixWait(sum, pending); }
  void Finish(const TilePart& part, const Vals& sums) override;

  const MatrixShape shape_;
};

Type Sums(const Tiling& tiling, const MatrixShape& s) {
  return Type::Matrix(s.c, MatrixUse::kAccumulator, static_cast<uint16_t>(tiling.size().rows),
                      static_cast<uint16_t>(tiling.size().columns), Scope::kWorkgroup);
}

Tile::Tile(const Region& r, const Tiling& tiling, const MatrixShape& s)
    : SlicedTile(r, tiling,
                 {.name = fmt::format("matmul_workgroup_{}x{}x{}{}", tiling.size().rows,
                                      tiling.size().columns, kDepth, tiling.Text()),
                  .threads = tiling.size().rows / s.m * kHoldersOfRows,
                  .rows = tiling.size().rows,
                  .columns = tiling.size().columns,
                  .steps = kDepth,
                  .sum = Sums(tiling, s),
                  .packed = kVector,
                  .lines = Lines::kAsLoaded,
                  .longest_line = kLine,
                  .running = 1}),
      shape_(s) {
  for (Slice* f : {&a_, &b_})
    Keep(*f, SliceOf(f->factor.type, f->length, tiling.size().stages), kLine / kVector);
  m_.launch.kernel.subgroup = static_cast<uint32_t>(r.caps().matrix_subgroup_size());
}

Type Tile::MatrixOf(const Slice& s) const {
  const auto length = static_cast<uint16_t>(s.length);
  return s.is_a ? Type::Matrix(shape_.a, MatrixUse::kA, length, kDepth, Scope::kWorkgroup)
                : Type::Matrix(shape_.b, MatrixUse::kB, kDepth, length, Scope::kWorkgroup);
}

void Tile::Finish(const TilePart& part, const Vals& sums) {
  StoreMatrix(part, 0, 0, sums[0], m_.region.caps().workgroup_elements_together);
}

Program Emit(const Region& r, const Gemm& g, const MatmulWorkgroup& t) {
  const MatrixShape& shape = *ShapeOf(g, r.caps());
  const Tiling tiling = TilingOf(g, t, shape);
  return tiling.ProgramOf(r, Tile(r, tiling, shape).Emit());
}

}  // namespace matmul_workgroup
}  // namespace

const Schedule kMatmulWorkgroup =
    ScheduleOn<matmul_workgroup::MatmulWorkgroup, PlainGemmOf, matmul_workgroup::Defaults,
               matmul_workgroup::Fits, matmul_workgroup::Emit>("matmul_workgroup");

}  // namespace forge::codegen
