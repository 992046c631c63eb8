// SPDX-License-Identifier: Apache-2.0
// Axes as attributes name them.
#pragma once
#include <span>
#include <vector>

#include "base/status.h"

namespace forge::ir {

// Negative axes count from the end.  errors: InvalidArgument "axis 3 is outside rank 2"
absl::StatusOr<int64_t> NormalAxis(int64_t axis, int64_t rank);
// In rising order.  errors: as above, and a repeated axis
absl::StatusOr<std::vector<int64_t>> NormalAxes(std::span<const int64_t> axes, int64_t rank);

}  // namespace forge::ir
