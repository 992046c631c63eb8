// SPDX-License-Identifier: Apache-2.0
// Convolution as a matrix product, which the schedules of the matmul family then compute
// (matmul_columns, matmul_shuffle, matmul_shared ...): C[m, place] = W[m, k] X[k, place], where k
// is a channel and a tap of the window, with a batch for each image and group. Windows are columns
// of X implicitly: nothing is copied. A window of one tap leaves channels by places.
#include <algorithm>

#include "codegen/schedules/matmul/gemm.h"
#include "codegen/schedules/window/window.h"
#include "ir/ops/spatial/conv_integer.h"

namespace forge::codegen {

using ir::Dim;
using ir::Dims;

namespace {

// Fewer outputs of a group than this waste most of a tile.
constexpr int64_t kLeastOutputs = 16;

// Of bytes only with units for their dot products: without them the parts of the op are faster.
std::optional<ConvShape> ShapeOf(const Region& r) {
  const auto* bytes = r.AnchorAs<ir::ConvInteger>();
  if (bytes == nullptr) return ConvOf(r);
  const DType x = r.anchor_inputs()[0].dtype(), w = r.anchor_inputs()[1].dtype();
  if (!DotsAreQuick(w, x, r.caps())) return std::nullopt;
  ConvShape s(r, bytes->unpadded());
  return s.group_outputs.max() < kLeastOutputs ? std::nullopt : std::optional(std::move(s));
}

}  // namespace

std::optional<Gemm> ConvAsGemm(const Region& r) {
  const std::optional<ConvShape> conv = ShapeOf(r);
  if (!conv) return std::nullopt;
  const ConvShape& s = *conv;
  const Dims w = r.anchor_inputs()[1].shape();
  const Dims taps(w.begin() + 1, w.end()), places = s.places;
  const int64_t groups = s.op.groups;
  const auto channel = [groups, s](const Dim& batch, const Dim& m) {
    return Mod(batch, groups) * s.group_outputs + m;
  };
  Gemm g{.batch = s.batch * groups, .k = ir::Product(taps)};
  g.a = {.extent = s.group_outputs, .operand = 1, .index = [=](const Factor::At& at) {
           Dims index = Unflatten(at.k, taps);
           index.insert(index.begin(), channel(at.batch, at.along));
           return index;
         }};
  g.b = {.extent = ir::Product(places), .operand = 0, .index = [=](const Factor::At& at) {
           const Dims place = Unflatten(at.along, places), tap = Unflatten(at.k, taps);
           return IndexOf(s.window, FloorDiv(at.batch, groups),
                          Mod(at.batch, groups) * taps[0] + tap[0], place,
                          std::span(tap).subspan(1));
         }};
  g.b.padded = ReadsWindows(r) || std::any_of(s.window.begin(), s.window.end(), [](const auto& a) {
                 return a.before != 0 || a.after != 0;
               });
  g.c_index = [=](const Gemm::At& at) {
    Dims index = Unflatten(at.n, places);
    index.insert(index.begin(), {FloorDiv(at.batch, groups), channel(at.batch, at.m)});
    return index;
  };
  if (s.biased)
    g.start = [=](Elements& e, const Gemm::At& at) { return e.At(2, {channel(at.batch, at.m)}); };
  return g;
}

}  // namespace forge::codegen
