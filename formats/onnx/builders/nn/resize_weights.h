// SPDX-License-Identifier: Apache-2.0
// Resizing by weights that are computed when a model is imported, for what the op `resize` lacks.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace forge::formats {

enum class AxisPlaces : uint8_t {
  kHalfPixel,
  kHalfPixelSymmetric,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kCropAndResize
};
enum class AxisKernel : uint8_t { kLinear, kCubic };

// One axis: `out` elements of `in`, both at least 1.
struct AxisResize {
  int64_t in = 1, out = 1;
  double scale = 1;
  AxisPlaces places = AxisPlaces::kHalfPixel;
  double begin = 0, end = 1;  // the region of kCropAndResize, as shares of the axis
};

struct AxisFilter {
  AxisKernel kernel = AxisKernel::kLinear;
  double cubic = -0.75;
  bool antialias = false;        // the kernel grows as the axis shrinks
  bool exclude_outside = false;  // else the outermost elements continue
};

// Where in the axis element `i` of the result lies.
double PlaceOf(const AxisResize& a, int64_t i);
// The share of each of the `in` elements in each of the `out` elements, in rows.
std::vector<double> AxisWeights(const AxisResize& a, const AxisFilter& f);

}  // namespace forge::formats
