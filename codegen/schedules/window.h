// SPDX-License-Identifier: Apache-2.0
// Windows over the rows and columns of an image: what convolution and pooling share.
#pragma once
#include "codegen/schedules/emission.h"
#include "ir/ops/conv2d.h"

namespace forge::codegen {

// How windows step over one axis.
struct WindowAxis {
  ir::Dim extent;  // of the input
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t padding = 0;  // before the first element
  // The input position of tap `tap` of output `out`; may lie outside.
  ir::Dim At(const ir::Dim& out, const ir::Dim& tap) const {
    return out * stride + tap * dilation - padding;
  }
};

template <class Op>
WindowAxis AxisOf(const Op& op, size_t i, const ir::Dim& extent, int64_t kernel) {
  return {extent, kernel, op.strides[i], op.dilations[i], op.padding[i]};
}

struct ConvShape {
  explicit ConvShape(const Region& r);  // whose anchor is a conv2d
  // The kernel's extents are numbers.
  bool known_window() const { return row.kernel > 0 && column.kernel > 0; }

  const ir::Conv2d& op;
  ir::Dim batch, channels, rows, columns;  // of the result
  ir::Dim group_outputs, group_inputs;     // channels of one group
  bool biased;
  WindowAxis row, column;
};

// nullopt: the anchor is no conv2d.
std::optional<ConvShape> ConvOf(const Region& r);

// An element of the anchor's first operand, padded with `outside`: where its row and column, the
// last of `index`, may lie.
Val LoadPadded(Emission& m, ir::Dims index, double outside = 0);

// Does the anchor read its first operand through windows of more than one tap?
bool ReadsWindows(const Region& r);
// Is something computed before such an anchor, again for each tap?
bool ComputesForEachTap(const Region& r);

// Calls `body` for taps [0, kernel), in place when they are few, else in a loop with carried
// values.
using TapBody = absl::FunctionRef<Vals(const ir::Dim& row, const ir::Dim& column, Vals carried)>;
Vals ForTaps(Emission& m, int64_t rows, int64_t columns, Vals carried, TapBody body);

}  // namespace forge::codegen
