// SPDX-License-Identifier: Apache-2.0
// Matrix product by workgroups: a tile of C in registers, slices of A and B in shared memory. What
// suits GPUs, whose shared memory and barriers are cheap.
#include "codegen/kernel/literal.h"
#include "codegen/schedules/matmul/matmul_slices.h"

namespace forge::codegen {
namespace {
namespace matmul_shared {

using ir::Dim;
using ir::Dims;

struct MatmulShared {
  int64_t rows = 64, columns = 64, depth = 16;  // of C and k, to a workgroup
  int64_t workgroups = 0;                       // that share all tiles; 0: one for each
  int64_t stages = 1;                           // of slices
  bool dots = false;                            // of four bytes at once
  int64_t group = 1;                            // of rows of tiles, taken column by column
  static constexpr Field kFields[] = {
      FieldOf<&MatmulShared::rows>("rows", "Rows of C to a workgroup.", "16|32|64"),
      FieldOf<&MatmulShared::columns>("columns", "Columns of C to a workgroup.", "16|32|64"),
      FieldOf<&MatmulShared::depth>("depth", "Steps of k in shared memory.", "8|16|32"),
      FieldOf<&MatmulShared::workgroups>("workgroups", "That share all tiles; 0: one for each.",
                                         "0|32|64|128|256"),
      FieldOf<&MatmulShared::stages>("stages", "Slices in shared memory at once.", "1|2"),
      FieldOf<&MatmulShared::dots>("dots", "By dot products of four bytes."),
      FieldOf<&MatmulShared::group>("group", "Rows of tiles, taken column by column.", "1|4|16")};
};

// Four steps of k to a word of shared memory.
constexpr int64_t kBytes = 4;

// The slices of an operand of which a workgroup has `length` rows or columns.
SharedArray SliceOf(const MatmulShared& t, DType dtype, int64_t length) {
  return {t.dots ? kU32 : AccumulatorOf(dtype),
          t.stages * Pitch(length) * t.depth / (t.dots ? kBytes : 1)};
}

MatmulShared TilesFor(const Gemm& g, const Caps& caps) {
  MatmulShared t;
  if (caps.few_registers()) t.rows = t.columns = 32;
  while (t.rows > 16 && g.m().max() <= t.rows / 2) t.rows /= 2;
  while (t.columns > 16 && g.n().max() <= t.columns / 2) t.columns /= 2;
  t.dots = DotsAreQuick(g.a.type, g.b.type, caps);
  if (t.dots) t.depth = 32;
  if (g.k.max() <= 8 || BitWidth(g.dtype) > 32) t.depth = 8;
  return t;
}

Tiling TilingOf(const Gemm& g, const MatmulShared& t) {
  return {g, {t.rows, t.columns, t.depth, t.workgroups, t.stages, t.group}};
}

MatmulShared Defaults(const Region& r, const Gemm& g) {
  MatmulShared t = TilesFor(g, r.caps());
  if (r.reduction() == nullptr) t.workgroups = TilingOf(g, t).SuggestWorkgroups();
  t.group = TilingOf(g, t).SuggestGroup(r);
  return t;
}

// What invocations of a row make of their columns, a bank more than there are.
constexpr int64_t kPartPitch = TileThreads::kColumns + 1;
// Whether those lie where a slice of A has been multiplied, of which an element packs some steps.
bool PartsReuseSlice(const Tiling::Size& size, Type slice, int64_t packed, Type part) {
  return size.stages == 1 && slice == part &&
         Pitch(size.rows) * size.depth / packed >= size.rows * kPartPitch;
}

SharedArray PartsOf(const Type& part, int64_t rows) { return {part, rows * kPartPitch}; }

std::vector<SharedArray> ArraysOf(const Region& r, const Gemm& g, const MatmulShared& t) {
  std::vector<SharedArray> all = {SliceOf(t, g.dtype, t.rows), SliceOf(t, g.dtype, t.columns)};
  if (r.reduction() == nullptr) return all;
  const Type part = AccumulatorOf(r.body().type(r.reduction()->first_out).dtype());
  if (!PartsReuseSlice(TilingOf(g, t).size(), all[0].elem, t.dots ? kBytes : 1, part))
    all.push_back(PartsOf(part, t.rows));
  return all;
}

// Smaller products are over before shared memory is filled.
constexpr int64_t kLeastSide = 16, kLeastDepth = 16;

Verdict Fits(const Region& r, const Gemm& g, const MatmulShared& t) {
  const Caps& caps = r.caps();
  if (caps.runs_on_cpu) return Verdict::No("barriers are dear on this device");
  if (Verdict v = HoldsRows(r, g, t.columns); !v) return v;
  if (r.reduction() != nullptr && t.workgroups > 0)
    return Verdict::No("no workgroup has the whole sums of a row");
  if ((r.reduction() == nullptr || HoldsShortRows(r, g)) &&
      (g.m().max() < kLeastSide || g.n().max() < kLeastSide || g.k.max() < kLeastDepth))
    return Verdict::No("the product is small");
  if (t.dots && (!OfBytes(g) || !caps.int_dot))
    return Verdict::No("it has no dots of its operands");
  if (Verdict v = TilingOf(g, t).Fits(r); !v) return v;
  return WorkgroupFits(TileThreads::kAll, caps, ArraysOf(r, g, t));
}

class Tile final : public SlicedTile {
 public:
  Tile(const Region& r, const Tiling& tiling, const MatmulShared& t, std::string name)
      : SlicedTile(r, tiling,
                   {.name = std::move(name),
                    .threads = TileThreads::kAll,
                    .down = TileThreads::kRows,
                    .across = TileThreads::kColumns,
                    .steps = t.dots ? kBytes : 1,
                    .sum = AccumulatorOf(tiling.gemm().dtype),
                    .packed = t.dots ? kBytes : 1,
                    .lines = Lines::kAlongC}) {
    for (Slice* s : {&a_, &b_})
      Keep(*s, SliceOf(t, tiling.gemm().dtype, s->length), Pitch(s->length));
  }

 private:
  Val Pack(const Slice& s, const Vals& bytes) override;
  Val Load(const Slice& s, Val at) override { return m_.b.Load(s.view, at); }
  Val MultiplyAdd(Val a, Val b, Val sum) override;
  void Finish(const TilePart& part, const Vals& sums) override;
  void FinishRows(const TilePart& part, const Vals& sums);
};

// Four steps of k as bytes of a word, the first in the lowest.
Val Tile::Pack(const Slice&, const Vals& bytes) {
  Val word;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const Val byte = (bitcast(bytes[i], DType::kU32) & 255.0) << (8.0 * static_cast<double>(i));
    word = i == 0 ? byte : word | byte;
  }
  return word;
}

Val Tile::MultiplyAdd(Val a, Val b, Val sum) {
  if (form_.packed == 1) return fma(a, b, sum);
  const bool signed_a = IsSigned(gemm().a.type), signed_b = IsSigned(gemm().b.type);
  if (signed_a != signed_b)
    return m_.b.Dot4(DotKind::kMixed, signed_a ? a : b, signed_a ? b : a, sum);
  if (signed_a) return m_.b.Dot4(DotKind::kSigned, a, b, sum);
  return bitcast(m_.b.Dot4(DotKind::kUnsigned, a, b, bitcast(sum, DType::kU32)), sum.type().elem);
}

// Each invocation folds its columns of its rows, then one for each row what those have.
void Tile::FinishRows(const TilePart& part, const Vals& sums) {
  Builder& b = m_.b;
  const RowFolding folding(m_, gemm());
  const Tiling::Size& size = tiling_.size();
  const Type type = folding.how().type(), slice = form_.packed > 1 ? kU32 : form_.sum;
  const uint16_t parts = PartsReuseSlice(size, slice, form_.packed, type)
                             ? a_.view
                             : m_.AddShared("parts", PartsOf(type, size.rows));
  const auto position = [&](const Dim& row) {
    return Guard(m_, part.row * size.rows + row, gemm().m());
  };
  std::vector<Position> columns;
  for (int64_t j = 0; j < b_.count; ++j) columns.push_back(Guard(m_, b_.first + j, gemm().n()));
  for (int64_t i = 0; i < a_.count; ++i) {
    const Dim row = a_.first + i;
    const Gemm::At at{part.batch, position(row).at, 0};
    Vals own(sums.begin() + i * b_.count, sums.begin() + (i + 1) * b_.count);
    if (gemm().start)
      for (Val& v : own) v = v + gemm().start(m_.e, at);
    b.Store(parts, m_.e.Value(row * kPartPitch + Mod(own_, TileThreads::kColumns)),
            folding.Fold(at, columns, own));
  }
  b.Barrier();
  b.If(m_.e.Value(own_) < static_cast<double>(size.rows), [&] {
    const Dim row = m_.e.Coordinate(m_.e.Value(own_), size.rows - 1);
    Val all = b.Load(parts, m_.e.Value(row * kPartPitch));
    for (int64_t i = 1; i < TileThreads::kColumns; ++i)
      all = folding.how().Fold(all, b.Load(parts, m_.e.Value(row * kPartPitch + i)));
    const Position at = position(row);
    IfInside(b, at.inside, [&] { folding.Finish({part.batch, at.at, 0}, all); });
  });
}

void Tile::Finish(const TilePart& part, const Vals& sums) {
  if (m_.region.reduction() != nullptr) return FinishRows(part, sums);
  const int lanes = b_.count == 4 && gemm().n().divisor() % 4 == 0 ? 4 : 1;
  for (int64_t i = 0; i < a_.count; ++i)
    for (int64_t j = 0; j < b_.count; j += lanes) {
      const auto own = std::span(sums).subspan(static_cast<size_t>(i * b_.count + j),
                                               static_cast<size_t>(lanes));
      tiling_.Store(m_, part, a_.first + i, b_.first + j, {}, [&] { return Packed(own); });
    }
}

Program Emit(const Region& r, const Gemm& g, const MatmulShared& t) {
  const Tiling tiling = TilingOf(g, t);
  std::string name = fmt::format("matmul_shared_{}x{}x{}{}{}", t.rows, t.columns, t.depth,
                                 tiling.Text(), t.dots ? "_dots" : "");
  return tiling.ProgramOf(r, Tile(r, tiling, t, std::move(name)).Emit());
}

}  // namespace matmul_shared
}  // namespace

Launch EmitSharedProduct(const Region& r, const Gemm& g, const std::string& name) {
  const matmul_shared::MatmulShared t = matmul_shared::TilesFor(g, r.caps());
  const Tiling tiling = matmul_shared::TilingOf(g, t);
  return matmul_shared::Tile(r, tiling, t, name).Emit();
}

const Schedule kMatmulShared =
    Reducing(ScheduleOn<matmul_shared::MatmulShared, GemmOf, matmul_shared::Defaults,
                        matmul_shared::Fits, matmul_shared::Emit>("matmul_shared"));

}  // namespace forge::codegen
