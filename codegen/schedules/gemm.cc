// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/gemm.h"

#include <algorithm>

#include "codegen/schedules/window.h"
#include "ir/ops/conv2d.h"
#include "ir/ops/matmul.h"
#include "ir/ops/matmul_integer.h"

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

int LanesAlongAxis(const Region& r, const Gemm& g, int operand, Dim Gemm::At::* axis,
                   const Dim& extent) {
  const auto& index = operand == g.a_operand ? g.a_index : g.b_index;
  return LanesAlong(r, operand, extent, [&](const Dim& along) {
    Gemm::At at{Any(g.batch, 1), Any(g.m, 1), Any(g.n, 1), Any(g.k, 1)};
    at.*axis = along;
    return index(at);
  });
}

void SetLanes(const Region& r, Gemm& g) {
  g.a_lanes_m = LanesAlongAxis(r, g, g.a_operand, &Gemm::At::m, g.m);
  g.a_lanes_k = LanesAlongAxis(r, g, g.a_operand, &Gemm::At::k, g.k);
  if (g.b_padded) return;
  g.b_lanes_k = LanesAlongAxis(r, g, g.b_operand, &Gemm::At::k, g.k);
  g.b_lanes_n = LanesAlongAxis(r, g, g.b_operand, &Gemm::At::n, g.n);
}

Gemm OfMatrices(const Region& r, const ir::MatrixProduct& op) {
  const Dims a = r.anchor_inputs()[0].shape(), b = r.anchor_inputs()[1].shape();
  const Dims c = r.anchor_output().shape();
  const Dims outer(c.begin(), c.end() - 2);
  Gemm g;
  g.batch = ir::Product(outer);
  g.m = c[c.size() - 2];
  g.n = c[c.size() - 1];
  g.k = a[a.size() - (op.transpose_a ? 2 : 1)];
  g.a_index = [=](const Gemm::At& at) {
    const Dims batch = Unflatten(at.batch, outer);
    return op.transpose_a ? MatrixIndex(batch, a, at.k, at.m) : MatrixIndex(batch, a, at.m, at.k);
  };
  g.b_index = [=](const Gemm::At& at) {
    const Dims batch = Unflatten(at.batch, outer);
    return op.transpose_b ? MatrixIndex(batch, b, at.n, at.k) : MatrixIndex(batch, b, at.k, at.n);
  };
  g.c_index = [=](const Gemm::At& at) {
    return MatrixIndex(Unflatten(at.batch, outer), c, at.m, at.n);
  };
  return g;
}

std::optional<ir::MatrixProduct> ProductOf(const Region& r) {
  if (const auto* op = r.AnchorAs<ir::MatMul>()) return op->product();
  if (const auto* op = r.AnchorAs<ir::MatMulInteger>()) return op->product();
  return std::nullopt;
}

// Elements of u8 are computed in u32, and summed in i32 like those of i8.
Val AsTerm(DType sums, Val v) {
  const DType t = AccumulatorOf(sums).elem;
  return v.type().elem == t ? v : bitcast(v, t);
}

bool IsPointwise(const Region& r, const ir::Conv2d& op) {
  return !ReadsWindows(r) &&
         std::all_of(op.padding.begin(), op.padding.end(), [](int64_t p) { return p == 0; });
}

// Channels by pixels, a batch for each image and group: C[m, pixel] = W[m, k] X[k, pixel], where k
// is a channel and a tap of the window.
Gemm OfConvolution(const Region& r, const ir::Conv2d& op) {
  const Dims x = r.anchor_inputs()[0].shape(), w = r.anchor_inputs()[1].shape();
  const Dims y = r.anchor_output().shape(), taps(w.begin() + 1, w.end());
  const WindowAxis row = {x[2], 0, op.strides[0], op.dilations[0], op.padding[0]};
  const WindowAxis column = {x[3], 0, op.strides[1], op.dilations[1], op.padding[1]};
  const int64_t groups = op.groups;
  Gemm g;
  g.batch = y[0] * groups;
  g.m = FloorDiv(y[1], groups);
  g.n = y[2] * y[3];
  g.k = ir::Product(taps);
  g.a_operand = 1;
  g.b_operand = 0;
  g.a_index = [=, m = g.m](const Gemm::At& at) {
    Dims index = Unflatten(at.k, taps);
    index.insert(index.begin(), Mod(at.batch, groups) * m + at.m);
    return index;
  };
  g.b_index = [=](const Gemm::At& at) {
    const Dims pixel = Unflatten(at.n, {y[2], y[3]}), tap = Unflatten(at.k, taps);
    return Dims{FloorDiv(at.batch, groups), Mod(at.batch, groups) * taps[0] + tap[0],
                row.At(pixel[0], tap[1]), column.At(pixel[1], tap[2])};
  };
  if (!IsPointwise(r, op)) g.b_padded = x;
  g.c_index = [=, m = g.m](const Gemm::At& at) {
    const Dims pixel = Unflatten(at.n, {y[2], y[3]});
    return Dims{FloorDiv(at.batch, groups), Mod(at.batch, groups) * m + at.m, pixel[0], pixel[1]};
  };
  if (r.anchor_inputs().size() > 2 && r.anchor_inputs()[2])
    g.start = [=, m = g.m](Elements& e, const Gemm::At& at) {
      return e.At(2, {Mod(at.batch, groups) * m + at.m});
    };
  return g;
}

}  // namespace

Val Gemm::A(Emission& m, const At& at, int lanes) const {
  if (load_a) return load_a(m, at, lanes);
  return AsTerm(dtype, m.e.At(a_operand, a_index(at), lanes));
}

Val Gemm::B(Emission& m, const At& at, int lanes) const {
  if (load_b) return load_b(m, at, lanes);
  Dims index = b_index(at);
  if (!b_padded) return AsTerm(dtype, m.e.At(b_operand, index, lanes));
  Val inside;
  for (size_t i = 0; i < index.size(); ++i) {
    const Position p = Guard(m, index[i], (*b_padded)[i]);
    index[i] = p.at;
    inside = Both(inside, p.inside);
  }
  return Where(inside, m.e.At(b_operand, index), 0);
}

Val Gemm::Start(Emission& m, const At& at) const {
  return start ? start(m.e, at) : m.b.Literal(AccumulatorOf(dtype), 0);
}

void Gemm::Finish(Emission& m, const At& at, Val v, int lanes) const {
  if (store) return store(m, at, v, lanes);
  m.e.Finish(c_index(at), v, lanes);
}

void Gemm::FinishFromZero(Emission& m, const At& at, Val v, int lanes) const {
  Finish(m, at, start ? v + start(m.e, at) : v, lanes);
}

std::optional<Gemm> GemmOf(const Region& r) {
  std::optional<Gemm> g;
  if (const auto product = ProductOf(r)) g = OfMatrices(r, *product);
  if (const auto* op = r.AnchorAs<ir::Conv2d>()) g = OfConvolution(r, *op);
  if (!g) return std::nullopt;
  g->dtype = r.anchor_output().dtype();
  g->a_type = r.anchor_inputs()[static_cast<size_t>(g->a_operand)].dtype();
  g->b_type = r.anchor_inputs()[static_cast<size_t>(g->b_operand)].dtype();
  SetLanes(r, *g);
  return g;
}

bool OfBytes(const Gemm& g) {
  const auto is_byte = [](DType t) { return t == DType::kI8 || t == DType::kU8; };
  return is_byte(g.a_type) && is_byte(g.b_type);
}

bool DotsAreQuick(const Gemm& g, const Caps& caps) {
  return OfBytes(g) &&
         (g.a_type == g.b_type ? caps.int_dot_accelerated : caps.int_dot_mixed_accelerated);
}

bool IsPlainGemm(const Region& r) {
  const auto* op = r.AnchorAs<ir::Conv2d>();
  return ProductOf(r) || (op != nullptr && IsPointwise(r, *op));
}

}  // namespace forge::codegen
