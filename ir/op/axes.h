// SPDX-License-Identifier: Apache-2.0
// Normalisation of axis attributes.
#pragma once
#include <span>
#include <vector>

#include "base/status.h"

namespace forge::ir {

// Returns the axis in 0..rank-1; negative axes count from the end. errors: InvalidArgument "axis 3
// is outside rank 2"
absl::StatusOr<int64_t> NormalAxis(int64_t axis, int64_t rank);
// Returns the axes in ascending order. errors: as above; also a repeated axis
absl::StatusOr<std::vector<int64_t>> NormalAxes(std::span<const int64_t> axes, int64_t rank);

}  // namespace forge::ir
