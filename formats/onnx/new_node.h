// SPDX-License-Identifier: Apache-2.0
// Nodes that the importer writes in place of others.
#pragma once
#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

namespace forge::formats {

// out: empty: the node has no output yet
onnx::NodeProto NewNode(const std::string& op, const std::vector<std::string>& in,
                        const std::string& out);
onnx::AttributeProto& AddAttribute(onnx::NodeProto& node, const std::string& name,
                                   onnx::AttributeProto::AttributeType type);
// A Constant of a list, or of the one number.
onnx::NodeProto NewConstant(const std::vector<int64_t>& values, bool scalar,
                            const std::string& out);

}  // namespace forge::formats
