// SPDX-License-Identifier: Apache-2.0
// Convolution as plain loops: for f64, and for what the library refuses (negative padding, empty
// channels).
#pragma once
#include "cpu_runtime/program.h"
#include "ir/ops/spatial/conv.h"

namespace forge::cpu {

struct ConvolutionLoops {
  ir::Conv op;
  View x, w, y;
  std::vector<uint32_t> operands;  // image, weights, bias if any
  int threads;
};
std::unique_ptr<AnchorCall> MakeConvolutionLoops(ConvolutionLoops loops);

}  // namespace forge::cpu
