// SPDX-License-Identifier: Apache-2.0
// The attributes of convolutions, for operators of other families.
#pragma once
#include "formats/onnx/node.h"
#include "ir/ops/spatial/conv.h"

namespace forge::formats {

// Where images have their channels: [n, c, ...] or [n, ..., c].
enum class ChannelAxis : uint8_t { kFirst, kLast };
ir::Value ChannelsFirst(OnnxNode& n, ir::Value x);
ir::Value ChannelsLast(OnnxNode& n, ir::Value x);

struct PlacedConv {
  ir::Conv op;
  ir::Dims before, after;                      // all the padding of each spatial axis
  std::function<ir::Value(ir::Value)> padded;  // adds the padding that no attribute can hold
};
// Reads the attributes of a convolution of operand 0 with the weights that operand `w` is; fails
// where the sizes of the kernel are not known or do not match. What it says is of the image with
// its channels first, wherever the operand has them.
std::optional<PlacedConv> ReadConv(OnnxNode& n, size_t w,
                                   ChannelAxis channels = ChannelAxis::kFirst);

// The average pool that the node's attributes say, of `x`, which is operand 0 with its channels
// first, wherever that has them.
ir::Value AveragePool(OnnxNode& n, ir::Value x, ChannelAxis channels = ChannelAxis::kFirst);

}  // namespace forge::formats
