// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/sequence_map.h"

#include "formats/onnx/new_node.h"

namespace forge::formats {
namespace {

using onnx::AttributeProto;
using onnx::NodeProto;

absl::StatusOr<const onnx::GraphProto*> BodyOf(const NodeProto& map) {
  const onnx::GraphProto* body = nullptr;
  for (const AttributeProto& a : map.attribute()) {
    if (a.name() != "body" || !a.has_g())
      return DataLoss("attribute '{}' is not an attribute of SequenceMap", a.name());
    body = &a.g();
  }
  if (body == nullptr) return DataLoss("attribute 'body' is missing");
  if (body->input_size() != map.input_size() || body->output_size() != map.output_size())
    return DataLoss("its body has {} inputs and {} outputs instead of {} and {}",
                    body->input_size(), body->output_size(), map.input_size(), map.output_size());
  return body;
}

// The items at the step, the body's nodes, and the results appended to what is carried.
onnx::GraphProto LoopBody(const NodeProto& map, const onnx::GraphProto& body,
                          const std::string& prefix) {
  onnx::GraphProto loop;
  loop.set_name(body.name());
  loop.add_input()->set_name(prefix + "step");
  loop.add_input()->set_name(prefix + "go_on");
  *loop.add_node() = NewNode("Identity", {prefix + "go_on"}, prefix + "go_on.next");
  loop.add_output()->set_name(prefix + "go_on.next");
  for (int i = 0; i < body.input_size(); ++i) {
    NodeProto& item = *loop.add_node() =
        NewNode("SequenceAt", {map.input(i), prefix + "step"}, body.input(i).name());
    // All but the first may be tensors, which each step takes whole.
    if (i > 0) AddAttribute(item, "whole_tensors", AttributeProto::INT).set_i(1);
  }
  for (const NodeProto& node : body.node()) *loop.add_node() = node;
  *loop.mutable_initializer() = body.initializer();
  for (int i = 0; i < body.output_size(); ++i) {
    const std::string before = fmt::format("{}list{}", prefix, i), after = before + ".next";
    loop.add_input()->set_name(before);
    *loop.add_node() = NewNode("SequenceInsert", {before, body.output(i).name()}, after);
    loop.add_output()->set_name(after);
  }
  return loop;
}

}  // namespace

absl::StatusOr<std::vector<NodeProto>> SequenceMapAsLoop(const NodeProto& map) {
  FORGE_ASSIGN_OR_RETURN(const onnx::GraphProto* body, BodyOf(map));
  if (map.output_size() == 0 || map.output(0).empty()) return DataLoss("its output 0 has no name");
  const std::string prefix = map.output(0) + ".map.";
  std::vector<NodeProto> nodes = {NewNode("SequenceLength", {map.input(0)}, prefix + "steps")};
  NodeProto loop = NewNode("Loop", {prefix + "steps", ""}, "");
  loop.set_name(map.name());
  *AddAttribute(loop, "body", AttributeProto::GRAPH).mutable_g() = LoopBody(map, *body, prefix);
  for (int i = 0; i < body->output_size(); ++i) {
    const std::string empty = fmt::format("{}empty{}", prefix, i);
    NodeProto& list = nodes.emplace_back(NewNode("SequenceEmpty", {}, empty));
    if (const int32_t type = body->output(i).type().tensor_type().elem_type(); type != 0)
      AddAttribute(list, "dtype", AttributeProto::INT).set_i(type);
    loop.add_input(empty);
    loop.add_output(map.output(i));
  }
  nodes.push_back(std::move(loop));
  return nodes;
}

}  // namespace forge::formats
