// SPDX-License-Identifier: Apache-2.0
// The structure of an ONNX graph: who defines which name, and in what order nodes can be read.
#pragma once
#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "base/status.h"

namespace forge::formats {

// What messages call a node: its name, or "(unnamed) -> OUTPUT".
std::string NameOfNode(const onnx::NodeProto& node);

// Positions of the graph's nodes in an order in which every operand comes first; the file's own
// order where that is one already.
//   errors: DataLoss naming a node (a name defined twice or nowhere, a cycle)
absl::StatusOr<std::vector<int>> OrderNodes(const onnx::GraphProto& graph);

}  // namespace forge::formats
