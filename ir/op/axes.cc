// SPDX-License-Identifier: Apache-2.0
#include "ir/op/axes.h"

#include <algorithm>

namespace forge::ir {

absl::StatusOr<int64_t> NormalAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return InvalidArgument("axis {} is outside rank {}", axis, rank);
  return axis < 0 ? axis + rank : axis;
}

absl::StatusOr<std::vector<int64_t>> NormalAxes(std::span<const int64_t> axes, int64_t rank) {
  std::vector<int64_t> out;
  for (int64_t axis : axes) {
    FORGE_ASSIGN_OR_RETURN(const int64_t a, NormalAxis(axis, rank));
    out.push_back(a);
  }
  std::sort(out.begin(), out.end());
  const auto twice = std::adjacent_find(out.begin(), out.end());
  if (twice != out.end()) return InvalidArgument("axis {} is given twice", *twice);
  return out;
}

}  // namespace forge::ir
