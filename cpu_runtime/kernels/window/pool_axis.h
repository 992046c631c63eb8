// SPDX-License-Identifier: Apache-2.0
// Windows of a pooling along one axis of an image.
#pragma once
#include <algorithm>

#include "cpu_runtime/kernels/kernel.h"
#include "ir/ops/spatial/window.h"

namespace forge::cpu {

// The taps of a window that meet the image along one axis, and what a mean divides by.
struct Taps {
  int64_t begin, end;  // of the kernel
  int64_t place;       // in the image of tap 0
  int64_t counted;     // positions in the image and its padding
};

// What slides over one axis of so many elements.
struct PoolAxis : ir::WindowAxis {
  int64_t kernel = 1, extent = 1;
  int64_t reach() const { return (kernel - 1) * dilation + 1; }

  Taps At(int64_t o) const {
    const int64_t place = PlaceOf(o, 0);
    const auto first_at = [&](int64_t bound) {  // the first tap at `bound` or after it
      return std::clamp<int64_t>((bound - place + dilation - 1) / dilation, 0, kernel);
    };
    const int64_t begin = place >= 0 ? 0 : first_at(0);
    const int64_t end = place >= extent ? 0 : first_at(extent);
    const int64_t padded = extent + after;
    return {begin, std::max(begin, end), place, place >= padded ? 0 : first_at(padded)};
  }
};

// The taps of all windows along each axis, by window.
using AllTaps = ir::PerAxis<std::vector<Taps>>;

template <class Op>
ir::PerAxis<PoolAxis> PoolAxesOf(const Op& op, const View& x) {
  const size_t axes = x.shape.size() - 2;
  const ir::PerAxis<ir::WindowAxis> window = ir::InVolume(ir::WindowOver(op, x.shape.size()));
  const auto kernel = ir::InVolume<int64_t>(ir::ForEachAxis(op.kernel, axes, 1), 1);
  const ir::PerAxis<int64_t> extent = ir::VolumeOf(x.shape);
  ir::PerAxis<PoolAxis> out;
  for (size_t a = 0; a < out.size(); ++a) out[a] = {window[a], kernel[a], extent[a]};
  return out;
}

inline AllTaps AllTapsOf(const ir::PerAxis<PoolAxis>& axes, const ir::PerAxis<int64_t>& places) {
  AllTaps out;
  for (size_t a = 0; a < axes.size(); ++a)
    for (int64_t o = 0; o < places[a]; ++o) out[a].push_back(axes[a].At(o));
  return out;
}

}  // namespace forge::cpu
