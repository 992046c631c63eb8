// SPDX-License-Identifier: Apache-2.0
// Inputs of an ONNX graph as types.
#pragma once
#include <onnx/onnx_pb.h>

#include "formats/onnx/importer.h"
#include "ir/graph/module.h"

namespace forge::formats {

// The type of `input`, with the symbols of its dimensions made in `module`: equal names are one
// symbol; -1, "?" and what is missing are each one of its own, named INPUT.AXIS.
//   options: may give the input a shape
//   errors: DataLoss (no tensor, no shape, a negative dimension, a size beyond 64 bits),
//   InvalidArgument (an option that does not fit)
absl::StatusOr<ir::Type> TypeOfInput(const onnx::ValueInfoProto& input, const OnnxOptions& options,
                                     ir::Module& module);

// Makes the symbols of all names that the inputs state, so that a dimension without one never takes
// a name that is stated later.
void NameSymbols(const onnx::GraphProto& graph, ir::Module& module);

}  // namespace forge::formats
