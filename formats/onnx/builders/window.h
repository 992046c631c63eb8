// SPDX-License-Identifier: Apache-2.0
// The attributes of convolutions, for operators of other families.
#pragma once
#include "formats/onnx/node.h"
#include "ir/ops/spatial/conv.h"

namespace forge::formats {

struct PlacedConv {
  ir::Conv op;
  ir::Dims before, after;                        // all the padding of each spatial axis
  std::function<ir::Value(ir::Value)> padded;  // adds the padding that no attribute can hold
};
// Reads the attributes of a convolution of operand 0 with the weights that operand `w` is; fails
// where the sizes of the kernel are not known or do not match.
std::optional<PlacedConv> ReadConv(OnnxNode& n, size_t w);

// The average pool that the node's attributes say, of `x`, which has the shape of operand 0.
ir::Value AveragePool(OnnxNode& n, ir::Value x);

}  // namespace forge::formats
