// SPDX-License-Identifier: Apache-2.0
// Extents to which unlike extents broadcast.
#pragma once
#include "ir/dim/dim.h"

namespace forge::ir {

// The extent to which two extents broadcast, where they are not known: max(a, b), times
// min(1, a, b) where either may be 0. Extents that broadcast already are taken once.
Dim BroadcastExtent(const Dim& a, const Dim& b);
// Whether `whole` is `part`, or the BroadcastExtent of `part` and others, so that a binding may
// make both equal.
bool MayEqualBroadcast(const Dim& part, const Dim& whole);
// The same axis by axis, for shapes of equal rank.
bool MayEqualBroadcast(const Dims& part, const Dims& whole);

}  // namespace forge::ir
