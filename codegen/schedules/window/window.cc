// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/window/window.h"

#include <algorithm>

#include "ir/ops/spatial/conv_integer.h"
#include "ir/ops/spatial/conv_transpose.h"
#include "ir/ops/spatial/pool.h"

namespace forge::codegen {
namespace {

// More taps than this are looped over, or kernels of large windows grow without bound; rows of
// taps also where a first run waits for the driver's compiler, and loops cost little.
constexpr int64_t kUnrolledTaps = 32;

constexpr int kVector = 4;

Window ConvWindow(const Region& r, const ir::Conv& conv) {
  std::vector<int64_t> kernel;
  for (const ir::Dim& taps : std::span(r.anchor_inputs()[1].shape()).subspan(2))
    kernel.push_back(taps.is_constant() ? taps.constant() : 0);
  return WindowOf(r, conv, kernel);
}

}  // namespace

ir::Dims IndexOf(const Window& w, const ir::Dim& n, const ir::Dim& channel,
                 std::span<const ir::Dim> out, std::span<const ir::Dim> tap) {
  ir::Dims index{n, channel};
  for (size_t a = 0; a < w.size(); ++a) index.push_back(w[a].At(out[a], tap[a]));
  return index;
}

ConvShape::ConvShape(const Region& r, ir::Conv conv)
    : op(std::move(conv)),
      batch(r.anchor_output().shape()[0]),
      channels(r.anchor_output().shape()[1]),
      places(r.anchor_output().shape().begin() + 2, r.anchor_output().shape().end()),
      group_outputs(FloorDiv(channels, op.groups)),
      group_inputs(r.anchor_inputs()[1].shape()[1]),
      biased(r.has_input(2)),
      window(ConvWindow(r, op)) {}

bool ConvShape::known_window() const {
  return std::all_of(window.begin(), window.end(), [](const auto& a) { return a.kernel > 0; });
}

std::optional<ConvShape> ConvOf(const Region& r) {
  const auto* conv = r.AnchorAs<ir::Conv>();
  return conv == nullptr ? std::nullopt : std::optional(ConvShape(r, *conv));
}

namespace {

// The element at `index`, whose spatial coordinates may lie outside of x, or `lanes` from there on.
Val LoadInside(Emission& m, ir::Dims index, int lanes, Vals& inside) {
  const ir::Dims& shape = m.region.anchor_inputs()[0].shape();
  for (size_t i = 2; i < index.size(); ++i) {
    const Position p = Guard(m, index[i], shape[i]);
    index[i] = p.at;
    inside.push_back(p.inside);
  }
  index.back() = index.back() + m.e.Lane(lanes);
  return m.e.At(0, index, lanes);
}

Val AllOf(const Vals& conditions) {
  Val all;
  for (const Val& v : conditions) all = Both(all, v);
  return all;
}

}  // namespace

Val LoadPadded(Emission& m, ir::Dims index, double outside) {
  Vals inside;
  const Val v = LoadInside(m, std::move(index), 1, inside);
  return Where(AllOf(inside), v, outside);
}

ColumnTile::ColumnTile(Emission& m, const Window& window, const TiledAxis& axis,
                       const ir::Dim& tile)
    : m_(m),
      window_(window),
      axis_(axis),
      vectors_(axis.size % kVector == 0 && axis.exact() && LanesAlongLast(m.region, 0) == kVector),
      first_(tile * axis.size),
      at_(axis.All(m, tile)) {}

Val ColumnTile::Load(ir::Dims index, const ir::Dims& tap, size_t column, double outside) const {
  if (!vectors_ || !tap.back().is_constant()) return LoadPadded(m_, std::move(index), outside);
  const WindowAxis& axis = window_.back();
  const int64_t offset = axis.PlaceOf(static_cast<int64_t>(column), tap.back().constant());
  const int64_t component = ((offset % kVector) + kVector) % kVector;
  index.back() = first_ * axis.stride + (offset - component);
  Vals inside;
  const Val all = LoadInside(m_, std::move(index), kVector, inside);
  const Val v = m_.b.Extract(all, static_cast<int>(component));
  return Where(AllOf(inside), v, outside);
}

void ColumnTile::Finish(const ir::Dims& index, std::span<const Val> values, int result) const {
  FinishRow(m_, axis_, at_, values, [&](const ir::Dim& first, Val v) {
    const int lanes = v.type().lanes;
    ir::Dims place = index;
    place.push_back(first + m_.e.Lane(lanes));
    m_.e.Finish(place, v, lanes, result);
  });
}

int64_t WholeTile(const ir::Dim& extent, int64_t most, int64_t step) {
  for (int64_t t = most / step * step; t >= step; t -= step)
    if (extent.divisor() % t == 0) return t;
  return step == 1 ? 1 : TileSize(extent, most);
}

bool ReadsWindows(const Region& r) {
  if (r.AnchorAs<ir::Conv>() == nullptr && r.AnchorAs<ir::ConvInteger>() == nullptr)
    return r.AnchorAs<ir::Pool>() != nullptr || r.AnchorAs<ir::ConvTranspose>() != nullptr;
  const auto taps = std::span(r.anchor_inputs()[1].shape()).subspan(2);
  return std::any_of(taps.begin(), taps.end(), [](const auto& d) { return !(d == ir::Dim(1)); });
}

bool ComputesForEachTap(const Region& r) {
  const auto& nodes = r.body().nodes();
  return ReadsWindows(r) && std::any_of(nodes.begin(), nodes.end(), [&](const ir::Node& n) {
           return &n < r.anchor() && n.op.def().scalar != nullptr;
         });
}

namespace {

// The taps of the axes that `tap` does not name yet.
Vals ForTapsFrom(Emission& m, const Window& window, bool many, const ir::Dims& tap, Vals carried,
                 TapBody body) {
  if (tap.size() == window.size()) return body(tap, std::move(carried));
  const auto step = [&](const ir::Dim& i, Vals inner) {
    ir::Dims next = tap;
    next.push_back(i);
    return ForTapsFrom(m, window, many, next, std::move(inner), body);
  };
  const int64_t taps = window[tap.size()].kernel;
  const bool last = tap.size() + 1 == window.size();
  if (taps > 1 && (many || (!last && m.region.caps().runs_on_cpu)))
    return m.Loop(taps, std::move(carried), step);
  for (int64_t i = 0; i < taps; ++i) carried = step(i, std::move(carried));
  return carried;
}

}  // namespace

Vals ForTaps(Emission& m, const Window& window, Vals carried, TapBody body) {
  int64_t taps = 1;
  for (const WindowAxis& axis : window) taps *= axis.kernel;
  return ForTapsFrom(m, window, taps > kUnrolledTaps, {}, std::move(carried), body);
}

}  // namespace forge::codegen
