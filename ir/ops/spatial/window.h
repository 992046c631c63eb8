// SPDX-License-Identifier: Apache-2.0
// Windows that slide over the spatial axes of a tensor [n, c, ...], as convolution and pooling have
// them.
#pragma once
#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "ir/type/type.h"

namespace forge::ir {

inline constexpr size_t kMostSpatialAxes = 3;

// How windows step over one axis.
struct WindowAxis {
  int64_t stride = 1, dilation = 1;
  int64_t before = 0, after = 0;  // padding
  // The place of element k of window o; negative or beyond the extent in padding.
  int64_t PlaceOf(int64_t o, int64_t k) const { return o * stride + k * dilation - before; }
};
using Window = std::vector<WindowAxis>;

// The window of an op over so many axes. Its lists have a number for each axis, padding those of
// all leading edges and then those of all trailing ones; an empty list stands for ones, and for no
// padding.
//   errors: InvalidArgument for other than 1 to 3 axes, lists of another length, numbers below 1
//           (padding may be any) or beyond 2^31
struct WindowLists {
  const std::vector<int64_t>&strides, &dilations, &padding;
};
absl::StatusOr<Window> WindowOf(const WindowLists& lists, size_t axes);
template <class Op>
absl::StatusOr<Window> WindowOf(const Op& op, size_t axes) {
  return WindowOf(WindowLists{op.strides, op.dilations, op.padding}, axes);
}
// The same of an op that was inferred, over the spatial axes of a tensor of this rank.
template <class Op>
Window WindowOver(const Op& op, size_t rank) {
  return *WindowOf(op, rank - 2);
}
// A list with a number for each axis; empty: `fallback` each.
std::vector<int64_t> ForEachAxis(std::vector<int64_t> list, size_t axes, int64_t fallback);

// How many windows of `kernel` elements fit along an axis. Where `ceil`, an incomplete last one
// counts if it begins inside the elements or the leading padding.
//   errors: InvalidArgument when not one fits
absl::StatusOr<Dim> WindowCount(const WindowAxis& w, const Dim& extent, const Dim& kernel,
                                bool ceil);

// The positions o of windows whose element k lies in 0 .. extent: a range begin <= o < end of
// 0 .. count.
struct Span {
  int64_t begin, end;
};
Span InsideOf(const WindowAxis& w, int64_t k, int64_t extent, int64_t count);

// Spatial axes as loops over a volume take them: three, those that are missing in front. An axis
// that is missing has one place.
template <class T>
using PerAxis = std::array<T, kMostSpatialAxes>;
template <class T>
PerAxis<T> InVolume(std::span<const T> axes, T missing) {
  PerAxis<T> out;
  out.fill(missing);
  std::copy(axes.begin(), axes.end(), out.end() - static_cast<std::ptrdiff_t>(axes.size()));
  return out;
}
inline PerAxis<WindowAxis> InVolume(const Window& w) { return InVolume<WindowAxis>(w, {}); }
// Of the extents, or strides, [n, c, ...].
inline PerAxis<int64_t> VolumeOf(std::span<const int64_t> shape) {
  return InVolume<int64_t>(shape.subspan(2), 1);
}
inline int64_t PlacesOf(const PerAxis<int64_t>& v) { return v[0] * v[1] * v[2]; }
// Element i of a volume, in row-major order.
inline PerAxis<int64_t> PlaceIn(const PerAxis<int64_t>& v, int64_t i) {
  return {i / (v[1] * v[2]), i / v[2] % v[1], i % v[2]};
}

}  // namespace forge::ir
