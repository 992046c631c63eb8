// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/graph/module.h"

namespace forge::ir {

// Puts the scale and shift of an inference batch norm into the weights and bias of the convolution
// that alone feeds it: y = conv(x, w * s) + (beta + (bias - mean) * s), s = gamma / sqrt(variance +
// epsilon).
absl::Status FoldBatchNorms(const Function& in, Function& out);

}  // namespace forge::ir
