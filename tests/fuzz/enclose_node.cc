// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/enclose_node.h"

#include <string>

namespace forge::fuzz {
namespace {

std::string Inner(const std::string& name) { return name.empty() ? name : "inner." + name; }

onnx::AttributeProto& AddGraph(onnx::NodeProto& node, const char* name) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::GRAPH);
  attribute.mutable_g()->set_name(name);
  return attribute;
}

// A scalar that the graph knows.
std::string AddNumber(onnx::GraphProto& graph, int32_t type, int value) {
  onnx::TensorProto& t = *graph.add_initializer();
  t.set_name("number." + std::to_string(graph.initializer_size()));
  t.set_data_type(type);
  if (type == onnx::TensorProto::INT64)
    t.add_int64_data(value);
  else
    t.add_int32_data(value);
  return t.name();
}

// The node with results that have names of their own, which are results of the body too.
void AddTo(onnx::GraphProto& body, const onnx::NodeProto& node) {
  onnx::NodeProto& inner = *body.add_node();
  inner = node;
  for (std::string& output : *inner.mutable_output()) {
    output = Inner(output);
    body.add_output()->set_name(output);
  }
}

// A node with the results of `node`.
onnx::NodeProto Around(const onnx::NodeProto& node, const char* op) {
  onnx::NodeProto outer;
  outer.set_op_type(op);
  outer.set_name(node.name());
  *outer.mutable_output() = node.output();
  return outer;
}

onnx::NodeProto Branch(onnx::GraphProto& graph, const onnx::NodeProto& node) {
  onnx::NodeProto outer = Around(node, "If");
  outer.add_input(AddNumber(graph, onnx::TensorProto::BOOL, 1));
  for (const char* name : {"then_branch", "else_branch"})
    AddTo(*AddGraph(outer, name).mutable_g(), node);
  return outer;
}

onnx::NodeProto Loop(onnx::GraphProto& graph, const onnx::NodeProto& node) {
  onnx::NodeProto outer = Around(node, "Loop");
  outer.add_input(AddNumber(graph, onnx::TensorProto::INT64, 2));
  outer.add_input("");
  onnx::GraphProto& body = *AddGraph(outer, "body").mutable_g();
  body.add_input()->set_name("step");
  body.add_input()->set_name("goes_on");
  body.add_output()->set_name("goes_on");
  AddTo(body, node);
  return outer;
}

onnx::NodeProto Call(onnx::ModelProto& model, const onnx::NodeProto& node) {
  onnx::FunctionProto& f = *model.add_functions();
  f.set_domain("local");
  f.set_name("f" + std::to_string(model.functions_size()));
  *f.mutable_opset_import() = model.opset_import();
  onnx::NodeProto& inner = *f.add_node();
  inner = node;
  for (std::string& input : *inner.mutable_input()) f.add_input(input = Inner(input));
  for (std::string& output : *inner.mutable_output()) f.add_output(output = Inner(output));
  onnx::NodeProto outer = Around(node, f.name().c_str());
  outer.set_domain(f.domain());
  *outer.mutable_input() = node.input();
  onnx::OperatorSetIdProto& opset = *model.add_opset_import();
  opset.set_domain(f.domain());
  opset.set_version(1);
  return outer;
}

}  // namespace

void EncloseNode(onnx::ModelProto& model, onnx::GraphProto& graph, int at, Enclosure in) {
  const onnx::NodeProto node = graph.node(at);
  onnx::NodeProto outer = in == Enclosure::kBranch ? Branch(graph, node)
                          : in == Enclosure::kLoop ? Loop(graph, node)
                                                   : Call(model, node);
  *graph.mutable_node(at) = std::move(outer);
}

}  // namespace forge::fuzz
