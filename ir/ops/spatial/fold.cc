// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/spatial/fold.h"

#include "ir/op/define.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/decomposing.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/indexing/index_arithmetic.h"
#include "ir/ops/movement/broadcast_to.h"
#include "ir/ops/spatial/window.h"

namespace forge::ir {
namespace {

constexpr size_t kImageAxes = 2;

// Windows over an image: the number of taps and of windows along each axis.
struct WindowGrid {
  Window window;
  std::vector<int64_t> taps;
  Dims sizes, windows;
  Dim all_taps() const { return taps[0] * taps[1]; }
  Dim all_windows() const { return windows[0] * windows[1]; }
};

template <class Op>
absl::StatusOr<WindowGrid> GridOf(const Op& op, const Dims& sizes) {
  WindowGrid g{.sizes = sizes};
  FORGE_ASSIGN_OR_RETURN(g.window, WindowOf(op, kImageAxes));
  g.taps = ForEachAxis(op.kernel, kImageAxes, 1);
  if (g.taps.size() != kImageAxes || sizes.size() != kImageAxes)
    return InvalidArgument("{} extents and a kernel of {} axes, not 2", sizes.size(),
                           g.taps.size());
  for (size_t a = 0; a < kImageAxes; ++a) {
    if (g.taps[a] < 1 || g.taps[a] > INT32_MAX) return InvalidArgument("kernel of {}", g.taps[a]);
    FORGE_ASSIGN_OR_RETURN(const Dim n, WindowCount(g.window[a], sizes[a], g.taps[a], false));
    g.windows.push_back(n);
  }
  return g;
}

// Where each tap of each window lies in a plane, as i32[1, taps, windows]; beyond the plane in
// padding.
Value TapPlaces(Function& f, const WindowGrid& g) {
  Value flat, inside;
  for (size_t a = 0; a < kImageAxes; ++a) {
    const auto axis = static_cast<int64_t>(a);
    const WindowAxis& w = g.window[a];
    const Value tap = Along(f, DType::kI32, g.taps[a], axis, 4);
    const Value window = Along(f, DType::kI32, g.windows[a], axis + 2, 4);
    const Value at = tap * static_cast<double>(w.dilation) +
                     (window * static_cast<double>(w.stride) - static_cast<double>(w.before));
    const Value is_inside = IsInside(at, g.sizes[a]);
    flat = flat ? flat * DimValue(g.sizes[a], flat) + at : at;
    inside = inside ? f(And{}, {inside, is_inside}) : is_inside;
  }
  flat = select(inside, flat, DimValue(g.sizes[0] * g.sizes[1], flat));
  return f(Reshape{{1, g.all_taps(), g.all_windows()}}, {flat});
}

}  // namespace

Values Unfold::decompose(Function& f, ValueSpan in) const {
  const Dims shape = in[0].type().shape();
  const auto grid = GridOf(*this, {shape[2], shape[3]});
  if (!grid.ok()) return f.Fail(grid.status()), Values{in[0]};
  const Dim taps = grid->all_taps(), windows = grid->all_windows();
  const Value planes = f(Reshape{{shape[0] * shape[1], shape[2] * shape[3]}}, {in[0]});
  const Value places = f(Reshape{{taps * windows}}, {TapPlaces(f, *grid)});
  return {
      f(Reshape{{shape[0], shape[1] * taps, windows}}, {f(Gather{.axis = 1}, {planes, places})})};
}

Values Fold::decompose(Function& f, ValueSpan in) const {
  const Dims shape = in[0].type().shape();
  const auto grid = GridOf(*this, sizes);
  if (!grid.ok()) return f.Fail(grid.status()), Values{in[0]};
  const Dim taps = grid->all_taps(), windows = grid->all_windows();
  if (shape[1].is_constant() && shape[1].constant() % taps.constant() != 0)
    return f.Fail(InvalidArgument("{} rows are not whole windows of {} taps", shape[1].ToText(),
                                  taps.ToText())),
           Values{in[0]};
  if (!Unify(shape[2], windows).ok())
    return f.Fail(
               InvalidArgument("{} columns for {} windows", shape[2].ToText(), windows.ToText())),
           Values{in[0]};
  const Dim channels = FloorDiv(shape[1], taps);
  const Value columns = f(Reshape{{shape[0] * channels, taps * windows}}, {in[0]});
  const Value places = f(Reshape{{taps * windows}}, {TapPlaces(f, *grid)});
  const Value planes = AddedInto({shape[0] * channels, sizes[0] * sizes[1]}, places, columns, 1);
  return {f(Reshape{{shape[0], channels, sizes[0], sizes[1]}}, {planes})};
}

Cases Unfold::cases() {
  return {
      {Unfold{.kernel = {2, 3}}, {"float[2,2,4,5]"}},
      {Unfold{.kernel = {3, 2}, .strides = {2, 1}, .dilations = {1, 2}, .padding = {1, 1, 1, 1}},
       {"f64[1,2,5,4]"}},
      {Unfold{}, {"f32[1,2,3,1]"}},
      {Unfold{.kernel = {2, 2}}, {"f32[0,2,3,4]"}},
      {Unfold{.kernel = {4, 1}}, {"f32[1,1,3,3]"}, "does not fit"},
      {Unfold{.kernel = {4}}, {"f32[1,1,3,3]"}, "a kernel of 1 axes"}};
}

Cases Fold::cases() {
  return {{Fold{{4, 5}, {2, 3}}, {"float[2,12,9]"}},
          {Fold{.sizes = {5, 4},
                .kernel = {3, 2},
                .strides = {2, 1},
                .dilations = {1, 2},
                .padding = {1, 1, 1, 1}},
           {"f64[1,12,12]"}},
          {Fold{{3, 1}}, {"f32[1,2,3]"}},
          {Fold{{3, 4}, {2, 2}}, {"f32[0,8,6]"}},
          {Fold{{3, 3}, {2, 2}}, {"f32[1,6,4]"}, "6 rows are not whole windows of 4 taps"},
          {Fold{{3, 3}, {2, 2}}, {"f32[1,8,5]"}, "5 columns for 4 windows"},
          {Fold{{3}, {2, 2}}, {"f32[1,8,5]"}, "1 extents"}};
}

FORGE_DEFINE_OP(Unfold)
FORGE_DEFINE_OP(Fold)

}  // namespace forge::ir
