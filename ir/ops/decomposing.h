// SPDX-License-Identifier: Apache-2.0
// The headers that most decompositions use, and the limit of those that are written out.
#pragma once
#include "ir/graph/module.h"
#include "ir/op/axes.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/movement/slice.h"
#include "ir/ops/reduction/reduce.h"

namespace forge::ir {

// The most steps that a decomposition writes out one after another: files are untrusted.
inline constexpr int64_t kMostSteps = 4096;
// Fails `f` and returns false unless the number of steps is known and at most kMostSteps.
inline bool CanWriteOut(Function& f, const Dim& steps) {
  if (steps.is_constant() && steps.constant() <= kMostSteps) return true;
  f.Fail(
      Unimplemented("{} steps cannot be written out one after another: a known number of at "
                    "most {} can",
                    steps.ToText(), kMostSteps));
  return false;
}

}  // namespace forge::ir
