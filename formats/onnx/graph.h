// SPDX-License-Identifier: Apache-2.0
// Definitions and order of the nodes of an ONNX graph.
#pragma once
#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "base/status.h"

namespace forge::formats {

// The name of a node in messages: its own, or "(unnamed) -> OUTPUT".
std::string NameOfNode(const onnx::NodeProto& node);

// Returns the indices of the nodes in an order in which every operand precedes its use; the order
// of the file where it is one.
//   errors: DataLoss naming a node (a name defined twice or not at all, a cycle)
absl::StatusOr<std::vector<int>> OrderNodes(const onnx::GraphProto& graph);

}  // namespace forge::formats
