// SPDX-License-Identifier: Apache-2.0
#include "tests/support/onnx_model.h"

#include <charconv>
#include <cstring>

#include "ir/graph/interpreter.h"

namespace forge {
namespace {

void SetShape(onnx::ValueInfoProto& value, const std::vector<std::string>& shape) {
  auto& dims = *value.mutable_type()->mutable_tensor_type()->mutable_shape();
  for (const std::string& word : shape) {
    int64_t number = 0;
    const char* end = word.data() + word.size();
    if (!word.empty() && std::from_chars(word.data(), end, number).ptr == end)
      dims.add_dim()->set_dim_value(number);
    else if (word.empty())
      dims.add_dim();
    else
      dims.add_dim()->set_dim_param(word);
  }
}

template <class T>
ir::HostValue TensorOf(DType dtype, std::vector<int64_t> shape, const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return *ir::HostValue::Of(dtype, shape, Bytes(std::move(bytes)));
}

}  // namespace

OnnxModel::OnnxModel(int64_t opset) {
  model_.set_ir_version(8);
  model_.add_opset_import()->set_version(opset);
  graph().set_name("graph");
}

OnnxModel& OnnxModel::Input(std::string_view name, const std::vector<std::string>& shape,
                            int32_t type) {
  onnx::ValueInfoProto& input = *graph().add_input();
  input.set_name(std::string(name));
  input.mutable_type()->mutable_tensor_type()->set_elem_type(type);
  SetShape(input, shape);
  return *this;
}

OnnxModel& OnnxModel::Output(std::string_view name, int32_t type) {
  onnx::ValueInfoProto& output = *graph().add_output();
  output.set_name(std::string(name));
  if (type != 0) output.mutable_type()->mutable_tensor_type()->set_elem_type(type);
  return *this;
}

onnx::NodeProto& OnnxModel::Node(std::string_view op, std::vector<std::string> inputs,
                                 std::vector<std::string> outputs) {
  onnx::NodeProto& node = *graph().add_node();
  node.set_op_type(std::string(op));
  node.set_name(std::string(op) + "_" + std::to_string(graph().node_size() - 1));
  for (std::string& name : inputs) node.add_input(std::move(name));
  for (std::string& name : outputs) node.add_output(std::move(name));
  return node;
}

onnx::TensorProto& OnnxModel::Initializer(std::string_view name, int32_t type,
                                          std::vector<int64_t> dims) {
  onnx::TensorProto& tensor = *graph().add_initializer();
  tensor.set_name(std::string(name));
  tensor.set_data_type(type);
  tensor.mutable_dims()->Add(dims.begin(), dims.end());
  return tensor;
}

OnnxModel& OnnxModel::Floats(std::string_view name, std::vector<int64_t> dims,
                             std::vector<float> values) {
  Initializer(name, onnx::TensorProto::FLOAT, std::move(dims))
      .mutable_float_data()
      ->Add(values.begin(), values.end());
  return *this;
}

OnnxModel& OnnxModel::Ints(std::string_view name, std::vector<int64_t> dims,
                           std::vector<int64_t> values) {
  Initializer(name, onnx::TensorProto::INT64, std::move(dims))
      .mutable_int64_data()
      ->Add(values.begin(), values.end());
  return *this;
}

absl::StatusOr<std::unique_ptr<ir::Module>> OnnxModel::Import(const OnnxOptions& options) const {
  return ImportBytes(File(), {}, options);
}

onnx::AttributeProto& Attribute(onnx::NodeProto& node, std::string_view name,
                                onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto& a = *node.add_attribute();
  a.set_name(std::string(name));
  a.set_type(type);
  return a;
}

void Set(onnx::NodeProto& node, std::string_view name, int64_t value) {
  Attribute(node, name, onnx::AttributeProto::INT).set_i(value);
}

void Set(onnx::NodeProto& node, std::string_view name, float value) {
  Attribute(node, name, onnx::AttributeProto::FLOAT).set_f(value);
}

void Set(onnx::NodeProto& node, std::string_view name, std::string_view value) {
  Attribute(node, name, onnx::AttributeProto::STRING).set_s(std::string(value));
}

void Set(onnx::NodeProto& node, std::string_view name, const std::vector<float>& value) {
  onnx::AttributeProto& a = Attribute(node, name, onnx::AttributeProto::FLOATS);
  a.mutable_floats()->Assign(value.begin(), value.end());
}

void Set(onnx::NodeProto& node, std::string_view name, const std::vector<std::string>& value) {
  onnx::AttributeProto& a = Attribute(node, name, onnx::AttributeProto::STRINGS);
  a.mutable_strings()->Assign(value.begin(), value.end());
}

void Set(onnx::NodeProto& node, std::string_view name, std::vector<int64_t> value) {
  Attribute(node, name, onnx::AttributeProto::INTS).mutable_ints()->Add(value.begin(), value.end());
}

absl::StatusOr<std::unique_ptr<ir::Module>> ImportBytes(std::string_view file,
                                                        const std::filesystem::path& folder,
                                                        const OnnxOptions& options) {
  return ImportOnnx(Bytes(std::vector<uint8_t>(file.begin(), file.end())), "m.onnx", folder,
                    options);
}

ir::HostValue FloatTensor(std::vector<int64_t> shape, const std::vector<float>& values) {
  return TensorOf(DType::kF32, std::move(shape), values);
}

ir::HostValue IntTensor(std::vector<int64_t> shape, const std::vector<int64_t>& values) {
  return TensorOf(DType::kI64, std::move(shape), values);
}

ir::HostValue Iota(std::vector<int64_t> shape) {
  ir::HostValue out = *ir::HostValue::Zeros(DType::kF32, shape);
  for (int64_t i = 0; i < out.elements(); ++i) out.Set(i, static_cast<double>(i));
  return out;
}

absl::StatusOr<std::vector<ir::HostValue>> ImportAndRun(const OnnxModel& model,
                                                        const std::vector<ir::HostValue>& inputs) {
  FORGE_ASSIGN_OR_RETURN(const std::unique_ptr<ir::Module> module, model.Import());
  FORGE_RETURN_IF_ERROR(ir::Verify(*module));
  std::vector<const ir::HostValue*> arguments;
  for (const ir::HostValue& v : inputs) arguments.push_back(&v);
  FORGE_ASSIGN_OR_RETURN(ir::Interpretation run,
                         ir::Interpreter().Run(*module->Find("main"), arguments));
  return std::move(run.results);
}

}  // namespace forge
