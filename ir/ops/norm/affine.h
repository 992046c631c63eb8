// SPDX-License-Identifier: Apache-2.0
// The affine part of norms.
#pragma once
#include "ir/ops/decomposing.h"
#include "ir/ops/norm/layer_norm.h"

namespace forge::ir {

// Fails the function of `v` unless `v` broadcasts to a tensor of `shape` without enlarging it.
void CheckBroadcasts(Value v, const Dims& shape);
// Returns y * gamma + beta; either may be absent. Both are widened and broadcast to `y`; the
// function fails if they would enlarge it.
Value Affine(Value y, Value gamma, Value beta);
// The same with gamma and beta of shape [c] along an axis of extent c.
Value AffineAlong(int64_t axis, Value y, Value gamma, Value beta);

}  // namespace forge::ir
