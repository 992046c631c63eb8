// SPDX-License-Identifier: Apache-2.0
// Broadcast of extents that are not known to be equal.
#pragma once
#include "ir/dim/dim.h"

namespace forge::ir {

// Returns the extent that two symbolic extents broadcast to: max(a, b), multiplied by min(1, a, b)
// if either may be 0. Operands that are broadcast extents themselves are flattened.
Dim BroadcastExtent(const Dim& a, const Dim& b);
// True when `whole` is `part`, or the BroadcastExtent of `part` and others, so that they are equal
// under some bindings.
bool MayEqualBroadcast(const Dim& part, const Dim& whole);
// The same for each axis of shapes of equal rank.
bool MayEqualBroadcast(const Dims& part, const Dims& whole);

}  // namespace forge::ir
