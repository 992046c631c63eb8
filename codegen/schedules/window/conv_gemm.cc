// SPDX-License-Identifier: Apache-2.0
// Convolution as a matrix product, which the schedules of the matmul family then compute
// (matmul_columns, matmul_shuffle, matmul_shared ...): C[m, place] = W[m, k] X[k, place], where k
// is a channel and a tap of the window, with a batch for each image and group. Windows are columns
// of X implicitly: nothing is copied. A window of one tap leaves channels by places. The gradient
// of weights is one, too.
#include <algorithm>

#include "codegen/schedules/matmul/gemm.h"
#include "codegen/schedules/window/window.h"
#include "ir/ops/spatial/conv_integer.h"
#include "ir/ops/spatial/conv_weight_gradient.h"

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

bool IsPadded(const Window& window) {
  return std::ranges::any_of(
      window, [](const WindowAxis& axis) { return axis.before != 0 || axis.after != 0; });
}

// C[m, tap] = dY[m, k] X[k, tap], where k is an image and a place in it.
Gemm WeightGradientAsGemm(const Region& r, const ir::ConvWeightGradient& op) {
  const Dims x = r.anchor_inputs()[0].shape(), dy = r.anchor_inputs()[1].shape();
  const Dims weight = r.anchor_output().shape();
  const Dims taps(weight.begin() + 1, weight.end());
  Dims places = dy;
  places.erase(places.begin() + 1);
  const int64_t groups = op.groups;
  const Dim outputs = FloorDiv(dy[1], groups);
  const Window window = WindowOf(r, op, std::vector<int64_t>(op.kernel.size(), 0));
  Gemm g{.batch = groups, .k = ir::Product(places)};
  g.a = {.extent = outputs, .operand = 1, .index = [=](const Factor::At& at) {
           Dims index = Unflatten(at.k, places);
           index.insert(index.begin() + 1, at.batch * outputs + at.along);
           return index;
         }};
  g.b = {.extent = ir::Product(taps), .operand = 0, .index = [=](const Factor::At& at) {
           const Dims place = Unflatten(at.k, places), tap = Unflatten(at.along, taps);
           return IndexOf(window, place[0], at.batch * taps[0] + tap[0],
                          std::span(place).subspan(1), std::span(tap).subspan(1));
         }};
  g.b.padded = IsPadded(window);
  g.c_index = [=](const Gemm::At& at) {
    Dims index = Unflatten(at.n, taps);
    index.insert(index.begin(), at.batch * outputs + at.m);
    return index;
  };
  return g;
}

}  // namespace

std::optional<Gemm> ConvAsGemm(const Region& r) {
  if (const auto* gradient = r.AnchorAs<ir::ConvWeightGradient>())
    return WeightGradientAsGemm(r, *gradient);
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
  g.b.padded = ReadsWindows(r) || IsPadded(s.window);
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
