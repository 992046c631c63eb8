// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/builders/nn/resize_weights.h"

#include <algorithm>
#include <cmath>

namespace forge::formats {
namespace {

// Keys' cubic convolution with the coefficient a.
double CubicAt(double a, double x) {
  x = std::fabs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

double KernelAt(const AxisFilter& f, double x) {
  if (f.kernel == AxisKernel::kCubic) return CubicAt(f.cubic, x);
  return std::max(0.0, 1 - std::fabs(x));
}

}  // namespace

double PlaceOf(const AxisResize& a, int64_t i) {
  const auto at = static_cast<double>(i), in = static_cast<double>(a.in);
  const double half_pixel = (at + 0.5) / a.scale - 0.5;
  const double last = static_cast<double>(a.out) - 1;
  switch (a.places) {
    case AxisPlaces::kHalfPixel:
      return half_pixel;
    case AxisPlaces::kHalfPixelSymmetric:
      return in / 2 * (1 - static_cast<double>(a.out) / (a.scale * in)) + half_pixel;
    case AxisPlaces::kPytorchHalfPixel:
      return a.out > 1 ? half_pixel : 0;
    case AxisPlaces::kAlignCorners:
      return a.out > 1 ? at * (in - 1) / (a.scale * in - 1) : 0;
    case AxisPlaces::kAsymmetric:
      return at / a.scale;
    case AxisPlaces::kCropAndResize:
      return a.out > 1 ? (a.begin + at * (a.end - a.begin) / last) * (in - 1)
                       : 0.5 * (a.begin + a.end) * (in - 1);
  }
  return half_pixel;
}

std::vector<double> AxisWeights(const AxisResize& a, const AxisFilter& f) {
  std::vector<double> all(static_cast<size_t>(a.in * a.out));
  const double shrink = f.antialias ? std::min(a.scale, 1.0) : 1;
  const double reach = (f.kernel == AxisKernel::kCubic ? 2 : 1) / shrink;
  for (int64_t i = 0; i < a.out; ++i) {
    // Far outside, only the outermost element counts.
    const double most = static_cast<double>(a.in) + reach;
    const double place = std::clamp(PlaceOf(a, i), -1 - reach, most);
    double* row = &all[static_cast<size_t>(i * a.in)];
    double sum = 0;
    const auto first = static_cast<int64_t>(std::ceil(place - reach));
    for (int64_t j = first; static_cast<double>(j) <= place + reach; ++j) {
      if (f.exclude_outside && (j < 0 || j >= a.in)) continue;
      const double weight = KernelAt(f, (static_cast<double>(j) - place) * shrink);
      row[std::clamp<int64_t>(j, 0, a.in - 1)] += weight;
      sum += weight;
    }
    for (int64_t j = 0; j < a.in && sum != 0; ++j) row[j] /= sum;
  }
  return all;
}

}  // namespace forge::formats
