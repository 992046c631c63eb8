// SPDX-License-Identifier: Apache-2.0
// Types of the inputs of an ONNX graph.
#pragma once
#include <onnx/onnx_pb.h>

#include "formats/onnx/importer.h"
#include "ir/graph/module.h"

namespace forge::formats {

// Returns the type of `input` and creates the symbols of its dimensions in `module`. Equal names
// are one symbol; each dimension that is -1, "?" or missing is a symbol named INPUT.AXIS.
//   options: may give the shape of the input
//   errors: DataLoss (not a tensor, no shape, a negative dimension, a size beyond 64 bits),
//   InvalidArgument (an option that does not fit)
absl::StatusOr<ir::Type> TypeOfInput(const onnx::ValueInfoProto& input, const OnnxOptions& options,
                                     ir::Module& module);

// Creates the symbols of all names that the inputs state, so that generated names (INPUT.AXIS)
// never collide with them.
void NameSymbols(const onnx::GraphProto& graph, ir::Module& module);

}  // namespace forge::formats
