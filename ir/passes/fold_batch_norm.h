// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/graph/module.h"

namespace forge::ir {

// Folds an inference batch norm into the weights and bias of the convolution that it reads, where
// the convolution has no other reader: y = conv(x, w * s) + (beta + (bias - mean) * s), s = gamma /
// sqrt(variance + epsilon).
absl::Status FoldBatchNorms(const Function& in, Function& out);

}  // namespace forge::ir
