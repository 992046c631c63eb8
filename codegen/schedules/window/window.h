// SPDX-License-Identifier: Apache-2.0
// Windows over the spatial axes of a tensor [n, c, ...], for convolution and pooling.
#pragma once
#include "codegen/schedules/emission.h"
#include "ir/ops/spatial/conv.h"
#include "ir/ops/spatial/window.h"

namespace forge::codegen {

// The windows along one axis.
struct WindowAxis : ir::WindowAxis {
  ir::Dim extent;      // of the input
  int64_t kernel = 1;  // 0: unknown
  // The input index of tap `tap` of output `out`; may be outside.
  ir::Dim At(const ir::Dim& out, const ir::Dim& tap) const {
    return out * stride + tap * dilation - before;
  }
};
// One for each spatial axis.
using Window = std::vector<WindowAxis>;

// Returns the window of the anchor, a convolution or a pool. kernel: taps along each axis
template <class Op>
Window WindowOf(const Region& r, const Op& op, std::span<const int64_t> kernel) {
  const ir::Dims& shape = r.anchor_inputs()[0].shape();
  const ir::Window steps = ir::WindowOver(op, shape.size());
  Window out;
  for (size_t a = 0; a < steps.size(); ++a) out.push_back({steps[a], shape[2 + a], kernel[a]});
  return out;
}
// Returns the index that tap `tap` of the output at `out` reads in channel `channel`. `out` and
// `tap` have a coordinate for each spatial axis.
ir::Dims IndexOf(const Window& w, const ir::Dim& n, const ir::Dim& channel,
                 std::span<const ir::Dim> out, std::span<const ir::Dim> tap);

struct ConvShape {
  ConvShape(const Region& r, ir::Conv conv);  // `conv`: what the anchor is, or would be of floats
  // True when the extents of the window are numbers.
  bool known_window() const;

  ir::Conv op;
  ir::Dim batch, channels;
  ir::Dims places;                      // extents of the result's spatial axes
  ir::Dim group_outputs, group_inputs;  // channels of a group
  bool biased;
  Window window;
};

// Returns the shape; nullopt if the anchor is not a conv.
std::optional<ConvShape> ConvOf(const Region& r);

// Loads an element of the anchor's first operand; `outside` where the spatial coordinates in
// `index` (after n and c) are in the padding.
Val LoadPadded(Emission& m, ir::Dims index, double outside = 0);

// The columns, along the last spatial axis, that an invocation computes. Where possible, their
// windows are loaded as aligned vectors, which overlapping windows share.
class ColumnTile {
 public:
  // tile: index of the tile of `axis`, which divides the last axis of the result
  ColumnTile(Emission& m, const Window& window, const TiledAxis& axis, const ir::Dim& tile);
  size_t size() const { return at_.size(); }
  const ir::Dim& at(size_t column) const { return at_[column].at; }
  // Loads the element at `index`, which tap `tap` of a column reads; `outside` in padding.
  Val Load(ir::Dims index, const ir::Dims& tap, size_t column, double outside = 0) const;
  // Passes a value of one of the anchor's results for each column to the region, as vectors where
  // possible. index: of the results, without the last axis
  void Finish(const ir::Dims& index, std::span<const Val> values, int result = 0) const;

 private:
  Emission& m_;
  const Window& window_;
  const TiledAxis& axis_;
  const bool vectors_;
  const ir::Dim first_;
  const std::vector<Position> at_;
};

// Returns the largest tile size up to `most` that divides the extent, a multiple of `step` where
// there is one. Partial tiles need a bounds check for each load, which costs more than smaller
// tiles.
int64_t WholeTile(const ir::Dim& extent, int64_t most, int64_t step);

// True when the anchor reads its first operand through windows of more than one tap.
bool ReadsWindows(const Region& r);
// True when ops before such an anchor are fused, so that they are computed for each tap.
bool ComputesForEachTap(const Region& r);

// Calls `body` for each tap, with a coordinate for each axis: unrolled if there are few taps,
// otherwise in loops with carried values.
using TapBody = absl::FunctionRef<Vals(const ir::Dims& tap, Vals carried)>;
Vals ForTaps(Emission& m, const Window& window, Vals carried, TapBody body);

}  // namespace forge::codegen
