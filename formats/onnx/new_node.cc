// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/new_node.h"

namespace forge::formats {

onnx::NodeProto NewNode(const std::string& op, const std::vector<std::string>& in,
                        const std::string& out) {
  onnx::NodeProto node;
  node.set_op_type(op);
  for (const std::string& name : in) node.add_input(name);
  if (!out.empty()) node.add_output(out);
  return node;
}

onnx::AttributeProto& AddAttribute(onnx::NodeProto& node, const std::string& name,
                                   onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto& a = *node.add_attribute();
  a.set_name(name);
  a.set_type(type);
  return a;
}

onnx::NodeProto NewConstant(const std::vector<int64_t>& values, bool scalar,
                            const std::string& out) {
  onnx::NodeProto node = NewNode("Constant", {}, out);
  onnx::TensorProto& t = *AddAttribute(node, "value", onnx::AttributeProto::TENSOR).mutable_t();
  t.set_data_type(onnx::TensorProto::INT64);
  if (!scalar) t.add_dims(static_cast<int64_t>(values.size()));
  for (const int64_t v : values) t.add_int64_data(v);
  return node;
}

}  // namespace forge::formats
