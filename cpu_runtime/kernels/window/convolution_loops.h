// SPDX-License-Identifier: Apache-2.0
// Convolution in plain loops: for f64, and for cases that oneDNN refuses (negative padding, no
// channels).
#pragma once
#include "cpu_runtime/program.h"
#include "ir/ops/spatial/conv.h"

namespace forge::cpu {

// A convolution with its operands.
struct ConvolutionLoops {
  ir::Conv op;
  View x, w, y;
  std::vector<uint32_t> operands;  // image, weights, optional bias
  int threads;
};
// Returns the call that computes the convolution.
std::unique_ptr<AnchorCall> MakeConvolutionLoops(ConvolutionLoops loops);

}  // namespace forge::cpu
