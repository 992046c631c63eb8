// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/matmul/gemm.h"

#include <algorithm>

#include "codegen/schedules/split.h"
#include "ir/ops/norm/layer_norm.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/product/matmul_integer.h"
#include "ir/ops/spatial/conv_weight_gradient.h"

namespace forge::codegen {
namespace {

using ir::Dim;
using ir::Dims;

// [batch axes ..., i, j] of an operand whose batch axes broadcast to those of the result.
Dims MatrixIndex(const Dims& batch, const Dims& shape, const Dim& i, const Dim& j) {
  Dims index = BroadcastIndex(batch, Dims(shape.begin(), shape.end() - 2));
  index.push_back(i);
  index.push_back(j);
  return index;
}

void SetLanes(const Region& r, const Gemm& g, Factor& f) {
  if (f.padded) return;
  const auto lanes = [&](Dim Factor::At::* axis, const Dim& extent) {
    return LanesAlong(r, f.operand, extent, [&](const Dim& along) {
      Factor::At at{Any(g.batch, 1), Any(f.extent, 1), Any(g.k, 1)};
      at.*axis = along;
      return f.index(at);
    });
  };
  f.lanes_along = lanes(&Factor::At::along, f.extent);
  f.lanes_k = lanes(&Factor::At::k, g.k);
}

// A matrix of `shape`; `outer`: batch axes of the result.
Factor OfMatrix(int operand, const Dims& shape, const Dims& outer, const Dim& extent, bool k_last) {
  return {.extent = extent, .operand = operand, .index = [=](const Factor::At& at) {
            const Dims batch = Unflatten(at.batch, outer);
            return k_last ? MatrixIndex(batch, shape, at.along, at.k)
                          : MatrixIndex(batch, shape, at.k, at.along);
          }};
}

Gemm OfMatrices(const Region& r, const ir::MatrixProduct& op) {
  const Dims a = r.anchor_inputs()[0].shape(), b = r.anchor_inputs()[1].shape();
  const Dims c = r.anchor_output().shape();
  const Dims outer(c.begin(), c.end() - 2);
  return {.batch = ir::Product(outer),
          .k = a[a.size() - (op.transpose_a ? 2 : 1)],
          .a = OfMatrix(0, a, outer, c[c.size() - 2], !op.transpose_a),
          .b = OfMatrix(1, b, outer, c[c.size() - 1], op.transpose_b),
          .c_index = [=](const Gemm::At& at) {
            return MatrixIndex(Unflatten(at.batch, outer), c, at.m, at.n);
          }};
}

double AtMost(const Dim& extent) { return static_cast<double>(extent.max()); }

bool AreBytes(DType a, DType b) {
  constexpr DTypes kBytes = Bit(DType::kI8) | Bit(DType::kU8);
  return Has(kBytes, a) && Has(kBytes, b);
}

std::optional<ir::MatrixProduct> ProductOf(const Region& r) {
  if (const auto* op = r.AnchorAs<ir::MatMul>()) return op->product();
  if (const auto* op = r.AnchorAs<ir::MatMulInteger>()) return op->product();
  return std::nullopt;
}

}  // namespace

Val Factor::Load(Emission& m, const At& at, int lanes) const {
  if (load) return load(m, at, lanes);
  Dims place = index(at);
  const Dims& shape = m.region.anchor_inputs()[static_cast<size_t>(operand)].shape();
  Val inside;
  for (size_t i = 0; padded && i < place.size(); ++i) {
    const Position p = Guard(m, place[i], shape[i]);
    place[i] = p.at;
    inside = Both(inside, p.inside);
  }
  // Elements of u8 are computed in u32, and summed in i32 like those of i8.
  const Val v = m.e.At(operand, place, lanes);
  return Where(inside, v.type().elem == DType::kU32 ? bitcast(v, DType::kI32) : v, 0);
}

Vals Factor::LoadPlaces(Emission& m, const Dim& batch, std::span<const Position> along,
                        const Dim& k, int64_t depth) const {
  const int lanes = lanes_k == depth ? lanes_k : 1;
  Vals out(along.size() * static_cast<size_t>(depth));
  for (size_t i = 0; i < along.size(); ++i) {
    Vals steps;
    for (int64_t s = 0; s < depth; s += lanes)
      Unpack(Load(m, {batch, along[i].at, k + s + m.e.Lane(lanes)}, lanes), steps);
    for (size_t s = 0; s < steps.size(); ++s) out[s * along.size() + i] = steps[s];
  }
  return out;
}

Vals Factor::LoadSteps(Emission& m, const Dim& batch, std::span<const Position> along, const Dim& k,
                       int64_t depth, int lanes) const {
  Vals out;
  for (int64_t s = 0; s < depth; ++s)
    for (size_t i = 0; i < along.size(); i += static_cast<size_t>(lanes))
      Unpack(Load(m, {batch, along[i].at + m.e.Lane(lanes), k + s}, lanes), out);
  return out;
}

Val Gemm::Start(Emission& m, const At& at) const {
  return start ? start(m.e, at) : m.b.Literal(AccumulatorOf(dtype), 0);
}

void Gemm::Finish(Emission& m, At at, Val v) const {
  const int lanes = v.type().lanes;
  at.n = at.n + m.e.Lane(lanes);
  if (store) return store(m, at, v);
  m.e.Finish(c_index(at), v, lanes);
}

void Gemm::FinishFromZero(Emission& m, const At& at, Val v) const {
  Finish(m, at, start ? v + start(m.e, at) : v);
}

std::optional<Gemm> GemmOf(const Region& r) {
  const std::optional<ir::MatrixProduct> product = ProductOf(r);
  std::optional<Gemm> g = product ? OfMatrices(r, *product) : ConvAsGemm(r);
  if (!g) return std::nullopt;
  g->dtype = r.anchor_output().dtype();
  for (Factor* f : {&g->a, &g->b}) {
    f->type = r.anchor_inputs()[static_cast<size_t>(f->operand)].dtype();
    SetLanes(r, *g, *f);
  }
  return g;
}

std::optional<Gemm> PlainGemmOf(const Region& r) {
  std::optional<Gemm> g = GemmOf(r);
  if (g && g->b.padded && r.AnchorAs<ir::ConvWeightGradient>() == nullptr) return std::nullopt;
  return g;
}

Dims TileAt(const Dim& tile, const Dims& grid, int64_t group) {
  if (group == 1) return Unflatten(tile, grid);
  const Dims at = Unflatten(tile, {grid[0], FloorDiv(grid[1], group), grid[2], group});
  return {at[0], at[1] * group + at[3], at[2]};
}

int64_t GroupFor(const Region& r, const Gemm& g, const Factor& outer, int64_t size) {
  constexpr int64_t kMostTiles = 16;  // in a group; after that, little is left to gain
  const double room = static_cast<double>(r.caps().cache_bytes) / 2, k = AtMost(g.k);
  const auto bytes = [&](const Factor& f, double places) {  // neighbouring windows overlap
    const ir::Type& whole = r.anchor_inputs()[static_cast<size_t>(f.operand)];
    return std::min(places * k, AtMost(whole.elements())) * BitWidth(f.type) / 8;
  };
  const Factor& inner = &outer == &g.a ? g.b : g.a;
  if (room == 0 || bytes(inner, AtMost(inner.extent)) <= room) return 1;
  const int64_t tiles = CeilDiv(outer.extent, size).divisor();
  int64_t group = 1;
  while (2 * group <= kMostTiles && tiles % (2 * group) == 0 &&
         bytes(outer, static_cast<double>(2 * group * size)) <= room)
    group *= 2;
  return group;
}

// The product normalises a row for each tile of its columns. Once is never more than before: it
// took 0.7 of the time on llvmpipe, of 16384 x 256 by 32 columns, and 1.3 by 512. The compilers of
// five GPU families say 4 to 8 % more cycles for the product, which few columns and the way to
// memory of a matrix beyond caches make up for: those of an element, at a quarter of the device's
// rate, take longer than to write it by more columns than twice the flops of a copied element.
Verdict NormPays(const Region& r) {
  const Caps& caps = r.caps();
  const int64_t tile = caps.runs_on_cpu ? 32 : 64;
  const std::optional<Gemm> g = GemmOf(r);
  const ir::Node& norm = *r.norm();
  const ir::Type& rows = r.body().type(norm.first_out);
  if (!g || r.anchor()->in[0] != norm.first_out || r.anchor()->in[1] == norm.first_out)
    return Verdict::No("no product has the norm as its left operand");
  const int64_t axis = norm.op.As<ir::LayerNorm>()->axis;
  if ((axis != -1 && axis != rows.rank() - 1) || !(g->k == rows.shape().back()) ||
      !g->k.is_constant())
    return Verdict::No("its rows are not those of the norm");
  if (!r.OfNorm().ArgumentOf(0)) return Verdict::No("rows would be computed again for each tile");
  const int64_t scratch = std::min(kMostScratchBytes, caps.max_operand_bytes);
  if (ir::FloorDiv(rows.elements(), g->k).min() > scratch / NormScratchBytes(rows))
    return Verdict::No("its statistics need too much scratch");
  if (g->n().max() <= tile) return Verdict::Yes();
  const int64_t bits = BitWidth(rows.dtype());
  const int64_t columns = caps.flops_per_byte > 0 ? caps.flops_per_byte * bits / 4 : 256;
  const int64_t elements = caps.cache_bytes > 0 ? caps.cache_bytes * 8 / bits : int64_t{1} << 20;
  if (caps.runs_on_cpu || g->n().max() > columns)
    return Verdict::No("too many tiles of columns would normalise it again");
  if (rows.elements().min() < elements) return Verdict::No("the matrix may stay in caches");
  return Verdict::Yes();
}

Verdict HoldsRows(const Region& r, const Gemm& g, int64_t columns) {
  if (r.reduction() == nullptr) return Verdict::Yes();
  const ir::SymbolRef n = NewCoordinate("n", LastIndex(g.n()));
  const Dims at = g.c_index({Any(g.batch, 1), Any(g.m(), 1), Dim(n)});
  for (size_t i = 0; i < at.size(); ++i)
    if (r.anchor_output().shape()[i].max() > 1 && DependsOn(at[i], n) != r.Reduces(i))
      return Verdict::No("what is reduced is no row of the product");
  if (g.n().min() < 1) return Verdict::No("rows may be empty");
  if (g.n().max() > columns)
    return Verdict::No(
        fmt::format("rows of {} are reduced, a tile has {} columns", g.n().ToText(), columns));
  return Verdict::Yes();
}

bool HoldsShortRows(const Region& r, const Gemm& g) {
  return g.n().max() <= (r.caps().few_registers() ? 8 : 16);
}

RowFolding::RowFolding(Emission& m, const Gemm& g)
    : m_(m),
      g_(g),
      how_{m.region.reduction()->op.As<ir::Reduce>()->kind,
           m.region.body().type(m.region.reduction()->first_out).dtype()} {}

Val RowFolding::Fold(Gemm::At row, std::span<const Position> columns,
                     std::span<const Val> sums) const {
  int lanes = LanesFor(g_.n());
  for (size_t j = 0; j < columns.size(); j += static_cast<size_t>(lanes))
    while (columns.size() % static_cast<size_t>(lanes) != 0 || columns[j].at.divisor() % lanes != 0)
      lanes /= 2;
  const Val start = how_.Start(m_.b, lanes);
  Val all = start;
  for (size_t j = 0; j < columns.size(); j += static_cast<size_t>(lanes)) {
    row.n = columns[j].at + m_.e.Lane(lanes);
    const Val sum = Packed(sums.subspan(j, static_cast<size_t>(lanes)));
    const Val x = m_.e.Reduced(g_.c_index(row), sum, lanes), inside = columns[j].inside;
    all = how_.Fold(all, inside ? select(inside, x, start) : x);
  }
  return CombineLanes(how_.kind(), all);
}

void RowFolding::Finish(const Gemm::At& row, Val all) const {
  m_.e.Finish(g_.c_index(row), how_.Done(all, g_.n()));
}

bool OfBytes(const Gemm& g) { return AreBytes(g.a.type, g.b.type); }

bool DotsAreQuick(DType a, DType b, const Caps& caps) {
  if (!AreBytes(a, b) || !caps.int_dot) return false;
  if (a != b) return caps.int_dot_mixed_accelerated;
  if (a == DType::kU8) return caps.int_dot_unsigned_accelerated;
  // Drivers make signed products of a unit for mixed ones: 0.57 of the cycles of single products
  // where there is no other, by tools/propose-defaults.
  return caps.int_dot_signed_accelerated || caps.int_dot_mixed_accelerated;
}

}  // namespace forge::codegen
