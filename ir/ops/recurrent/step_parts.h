// SPDX-License-Identifier: Apache-2.0
// Parts of what recurrent steps read and give.
#pragma once
#include "ir/ops/decomposing.h"

namespace forge::ir {

// Part `i` of the last axis of `v`, of h columns.
inline Value StepPart(Value v, int64_t i, const Dim& h) {
  return (*v.fn)(Slice{.begin = {h * i}, .end = {h * (i + 1)}, .axes = {-1}}, {v});
}

// What `v` [s, n, c] has at step `t`: [n, c].
inline Value AtStep(Value v, int64_t t) {
  const Dims& shape = v.type().shape();
  const Value at = (*v.fn)(Slice{.begin = {t}, .end = {t + 1}, .axes = {0}}, {v});
  return (*v.fn)(Reshape{{shape[1], shape[2]}}, {at});
}

}  // namespace forge::ir
