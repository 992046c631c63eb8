// SPDX-License-Identifier: Apache-2.0
// The gradients of convolutions.
#pragma once
#include "ir/graph/module.h"
#include "ir/ops/spatial/conv.h"

namespace forge::ir {

// The gradient of x of this shape where y = conv(x, weight), from that of y.
//   errors: Unimplemented where strides leave a remainder that is not known
Value DataGradientOf(const Conv& op, const Dims& x, Value weight, Value dy);
// The gradient of a weight of this shape.
Value WeightGradientOf(const Conv& op, Value x, const Dims& weight, Value dy);
// The gradient of a bias of shape [m].
Value BiasGradientOf(Value dy);
// The first elements of each spatial axis, as many as in `shape`.
Value FirstElements(Value v, const Dims& shape);

}  // namespace forge::ir
