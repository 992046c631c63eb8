// SPDX-License-Identifier: Apache-2.0
// What norms are made of besides their statistics.
#pragma once
#include "ir/ops/decomposing.h"
#include "ir/ops/norm/layer_norm.h"

namespace forge::ir {

// y * gamma + beta; either may be absent, and is widened. They broadcast to `y`: the function fails
// where they would enlarge it.
Value Affine(Value y, Value gamma, Value beta);
// The same with gamma and beta [c] along an axis of extent c.
Value AffineAlong(int64_t axis, Value y, Value gamma, Value beta);

}  // namespace forge::ir
