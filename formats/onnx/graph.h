// SPDX-License-Identifier: Apache-2.0
// Definitions and order of the nodes of an ONNX graph.
#pragma once
#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"

namespace forge::formats {

// The domain of an operator; that of the standard, "ai.onnx", is "".
std::string_view NormalDomain(std::string_view domain);
inline std::string_view DomainOf(const onnx::NodeProto& node) {
  return NormalDomain(node.domain());
}

// The name of a node in messages: its own, or "(unnamed) -> OUTPUT".
std::string NameOfNode(const onnx::NodeProto& node);

// The names that a graph reads and does not define, in the order of their first use: what it takes
// from the graphs around it.
std::vector<std::string> FreeNames(const onnx::GraphProto& graph);
// The names that a node reads: its operands, then the free names of its bodies.
std::vector<std::string> ReadNames(const onnx::NodeProto& node);

// Returns the indices of the nodes in an order in which every operand precedes its use; the order
// of the file where it is one.
//   outer: names that the graphs around it define
//   errors: DataLoss naming a node (a name defined twice or not at all, a cycle)
absl::StatusOr<std::vector<int>> OrderNodes(const onnx::GraphProto& graph,
                                            const absl::flat_hash_set<std::string>& outer);

}  // namespace forge::formats
