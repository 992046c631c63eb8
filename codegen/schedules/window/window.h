// SPDX-License-Identifier: Apache-2.0
// Windows over the spatial axes of a tensor [n, c, ...]: what convolution and pooling share.
#pragma once
#include "codegen/schedules/emission.h"
#include "ir/ops/spatial/conv.h"
#include "ir/ops/spatial/window.h"

namespace forge::codegen {

// How windows step over one axis.
struct WindowAxis : ir::WindowAxis {
  ir::Dim extent;      // of the input
  int64_t kernel = 1;  // 0: not known
  // The input position of tap `tap` of output `out`; may lie outside.
  ir::Dim At(const ir::Dim& out, const ir::Dim& tap) const {
    return out * stride + tap * dilation - before;
  }
};
// One for each spatial axis.
using Window = std::vector<WindowAxis>;

// The window of the anchor, of so many taps along each axis. Op: a convolution or a pool
template <class Op>
Window WindowOf(const Region& r, const Op& op, std::span<const int64_t> kernel) {
  const ir::Dims& shape = r.anchor_inputs()[0].shape();
  const ir::Window steps = ir::WindowOver(op, shape.size());
  Window out;
  for (size_t a = 0; a < steps.size(); ++a) out.push_back({steps[a], shape[2 + a], kernel[a]});
  return out;
}
// Where tap `tap` of the output at `out`, each with a coordinate for each axis, reads: the index of
// an element of channel `channel`.
ir::Dims IndexOf(const Window& w, const ir::Dim& n, const ir::Dim& channel,
                 std::span<const ir::Dim> out, std::span<const ir::Dim> tap);

struct ConvShape {
  explicit ConvShape(const Region& r);  // whose anchor is a conv
  // The kernel's extents are numbers.
  bool known_window() const;

  const ir::Conv& op;
  ir::Dim batch, channels;
  ir::Dims places;                      // extents of the result's spatial axes
  ir::Dim group_outputs, group_inputs;  // channels of one group
  bool biased;
  Window window;
};

// nullopt: the anchor is no conv.
std::optional<ConvShape> ConvOf(const Region& r);

// An element of the anchor's first operand, padded with `outside`: where its spatial coordinates,
// which follow n and c in `index`, may lie.
Val LoadPadded(Emission& m, ir::Dims index, double outside = 0);

// Neighbours along the last spatial axis that an invocation computes. Where x allows, their windows
// are loaded as aligned vectors: those that overlap share them.
class ColumnTile {
 public:
  // tile: which one of `axis`, which cuts the last axis of the result
  ColumnTile(Emission& m, const Window& window, const TiledAxis& axis, const ir::Dim& tile);
  size_t size() const { return at_.size(); }
  const ir::Dim& at(size_t column) const { return at_[column].at; }
  // The element at `index`, which tap `tap` of a column reads; `outside` in padding.
  Val Load(ir::Dims index, const ir::Dims& tap, size_t column, double outside = 0) const;
  // Hands a value for each column over, in vectors where they are whole. `index`: of their results,
  // but for the last axis.
  void Finish(const ir::Dims& index, std::span<const Val> values) const;

 private:
  Emission& m_;
  const Window& window_;
  const TiledAxis& axis_;
  const bool vectors_;
  const ir::Dim first_;
  const std::vector<Position> at_;
};

// The largest size up to `most` whose tiles are all whole, a multiple of `step` where there is one;
// what lies beyond an edge is tested at each load, which costs more than small tiles.
int64_t WholeTile(const ir::Dim& extent, int64_t most, int64_t step);

// Does the anchor read its first operand through windows of more than one tap?
bool ReadsWindows(const Region& r);
// Is something computed before such an anchor, again for each tap?
bool ComputesForEachTap(const Region& r);

// Calls `body` for every tap, with a coordinate for each axis: in place when they are few, else in
// loops with carried values.
using TapBody = absl::FunctionRef<Vals(const ir::Dims& tap, Vals carried)>;
Vals ForTaps(Emission& m, const Window& window, Vals carried, TapBody body);

}  // namespace forge::codegen
