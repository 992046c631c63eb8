// SPDX-License-Identifier: Apache-2.0
// Sums of products over axes that have labels: the common part of einsum and tensor_dot.
#pragma once
#include <span>

#include "ir/ops/decomposing.h"

namespace forge::ir {

// One label for each axis, none twice.
struct Labelled {
  Value value;
  std::vector<int> labels;
};

// Sums over the axes whose labels are not in `keep`.
Labelled SumOverOthers(Labelled x, std::span<const int> keep);
// The product of both, summed over the labels that are not in `keep`. Axes of one label are equal,
// or of extent 1. Floats and complex numbers are a matrix product; integers wrap.
Labelled Contract(Labelled a, Labelled b, std::span<const int> keep);
// The tensor with its axes in this order.
Value InOrder(const Labelled& x, std::span<const int> labels);

}  // namespace forge::ir
