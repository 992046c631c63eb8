// SPDX-License-Identifier: Apache-2.0
// Windows along an axis as values, one tap at a time: for decompositions of poolings and their
// gradients.
#pragma once
#include <optional>

#include "ir/graph/module.h"
#include "ir/ops/spatial/window.h"

namespace forge::ir {

// Tap t of window o reads element floor((o * step + t * spread + shift) / divisor) of the axis.
struct TapAxis {
  int64_t axis = 0;  // of the tensor
  Dim places = 1;    // windows
  int64_t taps = 1;
  Dim step = 1, spread = 1, shift = 0, divisor = 1;
  std::optional<Dim> end = {};  // elements from floor((o * step + end) / divisor) on do not count
  bool whole = false;           // nor do quotients with a remainder
};

// The axes of a window over a tensor [n, c, ..], of which `places` has the windows.
std::vector<TapAxis> TapAxes(const Window& window, std::span<const int64_t> kernel,
                             const Dims& places);
// Along one axis those windows that element i of the input lies in: the gradient reads the window's
// cotangents there.
TapAxis Reversed(const TapAxis& a, const Dim& extent);
// The same windows, and where strides leave gaps some others: fewer taps, since those that divide
// with a remainder are no taps. Windows must have no dilation.
TapAxis ReversedByWindow(const TapAxis& a, const Dim& extent);

// The element that tap t of each window reads, or any where there is none.
Value LoadTap(Value x, const TapAxis& a, int64_t t);
// Its position and whether it exists (null: always); their shape is that of `rank` axes, of which
// the others are 1.
Value TapPosition(Function& f, const TapAxis& a, int64_t t, int64_t rank);
Value TapExists(Function& f, const TapAxis& a, int64_t t, const Type& x);

// The sums over windows along all axes.
Value SumOfTaps(Value x, std::span<const TapAxis> axes);
// The number of elements in each window, as `t`; with `padded` also of those in trailing padding
// that begins behind the input and has so many elements along each axis.
Value CountOfTaps(Value x, std::span<const TapAxis> axes, DType t,
                  std::span<const int64_t> padded = {});
// Gives each element of a tensor of `shape` the sum of `v` over the windows whose `index`, in the
// row-major order of the axes, is its own; the axes are those of windows of `v`, Reversed. The
// terms are written out: TermsOf.
Value SumWhereIndexed(Value v, Value index, std::span<const TapAxis> axes, const Dims& shape);
int64_t TermsOf(std::span<const TapAxis> axes);
// The largest element of each window, the first of several, NaN before all; and its index, as i64,
// in the row-major order of the axes.
struct LargestTaps {
  Value value, index;
};
LargestTaps LargestOfTaps(Value x, std::span<const TapAxis> axes);

}  // namespace forge::ir
