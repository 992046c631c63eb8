// SPDX-License-Identifier: Apache-2.0
// Windows that slide over the rows and columns of an image, as convolution and pooling have them.
#pragma once
#include <vector>

#include "ir/type.h"

namespace forge::ir {

struct Window {
  const std::vector<int64_t>&strides, &dilations;  // rows, columns
  const std::vector<int64_t>& padding;             // top, left, bottom, right
};

// errors: InvalidArgument for lists of another length, numbers below 1 (padding may be any) or
// beyond 2^31
absl::Status CheckWindow(const Window& w);

// How many windows of `kernel` elements fit along axis 0 (rows) or 1 (columns) of `extent`. Where
// `ceil`, an incomplete last one counts if it begins inside the elements or the leading padding.
//   errors: InvalidArgument when not one fits
absl::StatusOr<Dim> WindowCount(const Window& w, int axis, const Dim& extent, const Dim& kernel,
                                bool ceil);

// The positions o of windows whose element k lies in 0 .. extent: a range begin <= o < end of
// 0 .. count.
struct Span {
  int64_t begin, end;
};
Span InsideOf(const Window& w, int axis, int64_t k, int64_t extent, int64_t count);
// The place of element k of window o; negative or beyond the extent in padding.
inline int64_t PlaceOf(const Window& w, int axis, int64_t o, int64_t k) {
  const size_t a = static_cast<size_t>(axis);
  return o * w.strides[a] + k * w.dilations[a] - w.padding[a];
}

}  // namespace forge::ir
