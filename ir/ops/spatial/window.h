// SPDX-License-Identifier: Apache-2.0
// Sliding windows over the spatial axes of a tensor [n, c, ...], for convolution and pooling.
#pragma once
#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "ir/type/type.h"

namespace forge::ir {

inline constexpr size_t kMostSpatialAxes = 3;

// The windows along one axis.
struct WindowAxis {
  int64_t stride = 1, dilation = 1;
  int64_t before = 0, after = 0;  // padding
  // The input index of tap k of window o; negative or beyond the extent in padding.
  int64_t PlaceOf(int64_t o, int64_t k) const { return o * stride + k * dilation - before; }
};
using Window = std::vector<WindowAxis>;

// Returns the window of an op over `axes` axes. Each list has a number for each axis; padding has
// those of all leading edges, then those of all trailing edges. An empty list means ones, or no
// padding.
//   errors: InvalidArgument (not 1 to 3 axes, lists of another length, strides or dilations below
//   1, numbers beyond 2^31)
struct WindowLists {
  const std::vector<int64_t>&strides, &dilations, &padding;
};
absl::StatusOr<Window> WindowOf(const WindowLists& lists, size_t axes);
template <class Op>
absl::StatusOr<Window> WindowOf(const Op& op, size_t axes) {
  return WindowOf(WindowLists{op.strides, op.dilations, op.padding}, axes);
}
// The same for a valid op and a tensor of this rank.
template <class Op>
Window WindowOver(const Op& op, size_t rank) {
  return *WindowOf(op, rank - 2);
}
// Returns the list with a number for each axis; an empty list becomes `fallback` for each.
std::vector<int64_t> ForEachAxis(std::vector<int64_t> list, size_t axes, int64_t fallback);

// Returns the number of windows of `kernel` elements along an axis. With `ceil`, an incomplete last
// window counts if it begins inside the input or the leading padding. errors: InvalidArgument (no
// window fits)
absl::StatusOr<Dim> WindowCount(const WindowAxis& w, const Dim& extent, const Dim& kernel,
                                bool ceil);

// The windows o whose tap k lies inside the input: begin <= o < end, within 0 .. count.
struct Span {
  int64_t begin, end;
};
Span InsideOf(const WindowAxis& w, int64_t k, int64_t extent, int64_t count);

// Spatial axes padded to three, for loops over a volume: missing axes are in front and have extent
// 1.
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
// From the extents, or strides, of a tensor [n, c, ...].
inline PerAxis<int64_t> VolumeOf(std::span<const int64_t> shape) {
  return InVolume<int64_t>(shape.subspan(2), 1);
}
inline int64_t PlacesOf(const PerAxis<int64_t>& v) { return v[0] * v[1] * v[2]; }
// The index of element i of a volume, in row-major order.
inline PerAxis<int64_t> PlaceIn(const PerAxis<int64_t>& v, int64_t i) {
  return {i / (v[1] * v[2]), i / v[2] % v[1], i % v[2]};
}

// The elements of a convolution's operands, real or complex; no bias, or one for each channel.
template <class T>
struct ConvElements {
  std::vector<T> image, weights, bias;
};

}  // namespace forge::ir
