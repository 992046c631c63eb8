// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cstdio>

#include "tests/fuzz/seeds.h"
#include "tests/support/onnx_model.h"

namespace forge::fuzz {
namespace {

// One node in words. Operands: "x 1,2,N" an input, "j 2" one of i64, "b 2,2" one of bool,
// "w 3,2,3,3" an f32 initialiser, "i 1,2" an i64 initialiser of these elements, "" absent.
// Attributes: "axis=1", "pads=1,1,1,1", "alpha=0.5", "mode=linear", "axes=1," a list of one.
struct OneNode {
  const char* op = nullptr;
  int opset = 0;
  const char* in[5] = {};  // as many as there are, then nulls; the attributes alike
  const char* attributes[3] = {};
};

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::vector<int64_t> Numbers(const std::string& text) {
  std::vector<int64_t> out;
  for (const std::string& word : Split(text)) out.push_back(std::atoll(word.c_str()));
  return out;
}

void AddAttribute(onnx::NodeProto& node, const std::string& text) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals), value = text.substr(equals + 1);
  if (value.find(',') != std::string::npos)
    Set(node, name, Numbers(value));
  else if (value.find('.') != std::string::npos)
    Set(node, name, static_cast<float>(std::atof(value.c_str())));
  else if (std::isdigit(static_cast<unsigned char>(value[0])) || value[0] == '-')
    Set(node, name, static_cast<int64_t>(std::atoll(value.c_str())));
  else
    Set(node, name, std::string_view(value));
}

// The operand's name in the model.
std::string AddOperand(OnnxModel& model, const std::string& text, size_t at) {
  if (text.empty()) return "";
  const std::string name = text[0] + std::to_string(at), rest = text.substr(2);
  switch (text[0]) {
    case 'x':
      model.Input(name, Split(rest));
      break;
    case 'j':
      model.Input(name, Split(rest), onnx::TensorProto::INT64);
      break;
    case 'b':
      model.Input(name, Split(rest), onnx::TensorProto::BOOL);
      break;
    case 'w': {
      const std::vector<int64_t> shape = Numbers(rest);
      int64_t elements = 1;
      for (const int64_t extent : shape) elements *= extent;
      std::vector<float> values;
      for (int64_t i = 0; i < elements; ++i) values.push_back(static_cast<float>(i % 7) * 0.25F);
      model.Floats(name, shape, std::move(values));
      break;
    }
    default: {
      const std::vector<int64_t> values = Numbers(rest);
      model.Ints(name, {static_cast<int64_t>(values.size())}, values);
    }
  }
  return name;
}

constexpr OneNode kNodes[] = {
    {"AveragePool", 11, {"x 1,2,5,5"}, {"kernel_shape=2,2", "pads=1,0,1,0", "strides=2,1"}},
    {"AveragePool", 19, {"x N,2,H,W"}, {"kernel_shape=3,3", "ceil_mode=1", "count_include_pad=1"}},
    {"BatchNormalization", 15, {"x 1,3,2,2", "w 3", "w 3", "w 3", "w 3"}, {"epsilon=0.1"}},
    {"Cast", 13, {"x 2,3"}, {"to=7"}},
    {"Clip", 13, {"x 2,3", "w ", "w "}},
    {"Concat", 13, {"x 2,3", "w 2,2"}, {"axis=-1"}},
    {"Conv", 11, {"x 1,2,5,5", "w 4,1,3,3", "w 4"}, {"group=2", "pads=1,1,1,1", "strides=2,2"}},
    {"Conv", 11, {"x 1,2,7", "w 3,2,3"}, {"dilations=2,", "auto_pad=SAME_UPPER"}},
    {"ConvTranspose", 11, {"x 1,2,3,3", "w 2,3,2,2"}, {"strides=2,2", "output_padding=1,1"}},
    {"Dropout", 13, {"x 2,3", "w ", ""}},
    {"Expand", 13, {"x 1,3", "i 2,3"}},
    {"Flatten", 13, {"x N,2,3"}, {"axis=1"}},
    {"Gather", 13, {"x 3,4", "i 0,2"}, {"axis=0"}},
    {"Gather", 13, {"w 3,4", "j N,2"}, {"axis=1"}},
    {"GatherElements", 13, {"x 2,2", "j 2,2"}, {"axis=1"}},
    {"GatherND", 13, {"x 2,2", "j 2,1"}, {"batch_dims=0"}},
    {"Gelu", 20, {"x 2,3"}, {"approximate=tanh"}},
    {"Gemm", 13, {"x N,3", "w 3,4", "w 4"}, {"alpha=0.5", "transB=0"}},
    {"Gemm", 7, {"x 3,2", "w 4,3", "w 4"}, {"transA=1", "transB=1", "beta=2.0"}},
    {"GlobalAveragePool", 1, {"x N,2,3,3"}},
    {"GroupNormalization", 18, {"x 1,4,3", "w 2", "w 2"}, {"num_groups=2", "epsilon=0.1"}},
    {"GroupNormalization", 21, {"x N,4,3", "w 4", "w 4"}, {"num_groups=2"}},
    {"HardSigmoid", 6, {"x 2,3"}, {"alpha=0.2", "beta=0.5"}},
    {"InstanceNormalization", 6, {"x N,2,3,3", "w 2", "w 2"}, {"epsilon=0.1"}},
    {"RMSNormalization", 23, {"x N,4", "w 4"}, {"axis=-1", "epsilon=0.00001"}},
    {"LayerNormalization", 17, {"x N,4", "w 4", "w 4"}, {"axis=-1", "epsilon=0.00001"}},
    {"LeakyRelu", 16, {"x 2,3"}, {"alpha=0.1"}},
    {"MatMul", 13, {"x N,2,3", "w 3,4"}},
    {"MatMul", 13, {"x 2,3", "x 3,K"}},
    {"Max", 13, {"x 2,3", "w 3", "w 2,1"}},
    {"MaxPool", 12, {"x 1,2,5,5"}, {"kernel_shape=2,2", "strides=2,2", "dilations=2,2"}},
    {"Mod", 13, {"x 2,3", "w 3"}},
    {"PRelu", 16, {"x 1,3,2", "w 3,1"}},
    {"Pad", 2, {"x 2,3"}, {"pads=0,1,0,1", "mode=reflect"}},
    {"Pad", 13, {"x 2,3", "i 1,0,0,2", "w "}, {"mode=constant"}},
    {"Pad", 18, {"x 2,3", "i 1,1", "", "i -1,"}, {"mode=edge"}},
    {"Pow", 15, {"x 2,3", "w 3"}},
    {"Range", 11, {"i 0,", "i 5,", "i 2,"}},
    {"ReduceMean", 13, {"x N,3,4"}, {"axes=-1,", "keepdims=0"}},
    {"ReduceSum", 13, {"x 2,3,4", "i 0,2"}, {"keepdims=1"}},
    {"ReduceMax", 18, {"x 2,3", "i 1,"}, {"noop_with_empty_axes=1"}},
    {"ReduceL2", 13, {"x 2,3"}, {"axes=1,"}},
    {"ReduceLogSumExp", 13, {"x 2,3"}, {"axes=1,"}},
    {"Reshape", 14, {"x N,2,3", "i 0,-1"}},
    {"Reshape", 14, {"x 2,3", "i 3,2"}, {"allowzero=1"}},
    {"Resize",
     13,
     {"x 1,1,2,2", "", "w 4"},
     {"mode=linear", "coordinate_transformation_mode=half_pixel"}},
    {"Resize", 11, {"x 1,1,2,2", "w 0", "w 0", "i 1,1,4,3"}, {"mode=cubic", "nearest_mode=floor"}},
    {"Slice", 13, {"x 4,6", "i 1,0", "i 3,9", "i 0,1", "i 1,2"}},
    {"Slice", 9, {"x 4,6"}, {"starts=1,0", "ends=3,-1", "axes=0,1"}},
    {"Softmax", 13, {"x 2,3"}, {"axis=-1"}},
    {"Softmax", 11, {"x 2,3,4"}, {"axis=1"}},
    {"Squeeze", 13, {"x 1,2,1", "i 0,2"}},
    {"Transpose", 13, {"x N,2,3"}, {"perm=2,0,1"}},
    {"Unsqueeze", 13, {"x 2,3", "i 0,-1"}},
    {"Unsqueeze", 11, {"x 2,3"}, {"axes=0,3"}},
    {"Upsample", 9, {"x 1,1,2,2", "w 4"}, {"mode=nearest"}},
    {"Where", 16, {"b 2,3", "x 3", "w 2,1"}},
};

std::string FileOf(const OneNode& spec) {
  OnnxModel model(spec.opset);
  std::vector<std::string> names;
  for (const char* operand : spec.in)
    if (operand != nullptr) names.push_back(AddOperand(model, operand, names.size()));
  onnx::NodeProto& node = model.Node(spec.op, names, {"y"});
  for (const char* attribute : spec.attributes)
    if (attribute != nullptr) AddAttribute(node, attribute);
  model.Output("y");
  return model.File();
}

// Operators whose operands are all alike: one input each.
void AddPlainNodes(Files& out) {
  for (const char* op : {"Abs",           "Ceil",      "Elu",      "Erf",  "Exp",   "Floor",
                         "GlobalMaxPool", "HardSwish", "Identity", "Log",  "Mish",  "Neg",
                         "Reciprocal",    "Relu",      "Round",    "Selu", "Shape", "Sigmoid",
                         "Sign",          "Softplus",  "Softsign", "Sqrt", "Tanh"})
    out.push_back(FileOf({op, 18, {"x 1,N,3"}}));
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Min", "Sum", "Equal", "Greater", "Less",
                         "GreaterOrEqual", "LessOrEqual"})
    out.push_back(FileOf({op, 18, {"x 2,3", "w 3"}}));
  for (const char* op : {"And", "Or", "Xor"}) out.push_back(FileOf({op, 18, {"b 2,3", "b 3"}}));
  out.push_back(FileOf({"Not", 18, {"b 2,3"}}));
}

// Shape arithmetic: what exporters write for x.view(x.shape[0], -1).
std::string Flattening() {
  OnnxModel model(17);
  model.Input("x", {"N", "2", "3"}).Ints("zero", {1}, {0}).Ints("rest", {1}, {-1});
  model.Node("Shape", {"x"}, {"shape"});
  Set(model.Node("Gather", {"shape", "zero"}, {"n"}), "axis", int64_t{0});
  Set(model.Node("Concat", {"n", "rest"}, {"to"}), "axis", int64_t{0});
  model.Node("Reshape", {"x", "to"}, {"y"});
  return model.Output("y").File();
}

// A convolution, its norm and a squeeze-excite branch.
std::string Block() {
  OnnxModel model(13);
  model.Input("x", {"1", "3", "H", "W"}).Floats("w", {2, 3, 1, 1}, {1, 2, 3, 4, 5, 6});
  for (const char* name : {"scale", "bias", "mean", "var"}) model.Floats(name, {2}, {1, 2});
  model.Floats("s", {2, 2, 1, 1}, {1, 0, 0, 1});
  model.Node("Conv", {"x", "w"}, {"c"});
  model.Node("BatchNormalization", {"c", "scale", "bias", "mean", "var"}, {"n"});
  model.Node("HardSigmoid", {"n"}, {"h"});
  model.Node("Mul", {"n", "h"}, {"a"});
  model.Node("GlobalAveragePool", {"a"}, {"p"});
  model.Node("Conv", {"p", "s"}, {"q"});
  model.Node("Sigmoid", {"q"}, {"g"});
  model.Node("Mul", {"a", "g"}, {"y"});
  return model.Output("y").File();
}

// Attention of one head with a padding mask.
std::string Attention() {
  OnnxModel model(13);
  model.Input("x", {"S", "4"}).Input("mask", {"1", "S"}).Floats("scale", {}, {0.5F});
  for (const char* name : {"wq", "wk", "wv"})
    model.Floats(name, {4, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
  model.Node("MatMul", {"x", "wq"}, {"q"});
  model.Node("MatMul", {"x", "wk"}, {"k"});
  model.Node("MatMul", {"x", "wv"}, {"v"});
  Set(model.Node("Transpose", {"k"}, {"t"}), "perm", std::vector<int64_t>{1, 0});
  model.Node("MatMul", {"q", "t"}, {"scores"});
  model.Node("Mul", {"scores", "scale"}, {"scaled"});
  model.Node("Add", {"scaled", "mask"}, {"masked"});
  Set(model.Node("Softmax", {"masked"}, {"p"}), "axis", int64_t{-1});
  model.Node("MatMul", {"p", "v"}, {"y"});
  return model.Output("y").File();
}

std::string Constants() {
  OnnxModel model(13);
  model.Input("x", {"2", "2"});
  onnx::TensorProto& value =
      *Attribute(model.Node("Constant", {}, {"c"}), "value", onnx::AttributeProto::TENSOR)
           .mutable_t();
  value.set_data_type(onnx::TensorProto::FLOAT);
  value.add_dims(2);
  value.set_raw_data(std::string(8, '\x3f'));
  model.Node("Add", {"x", "c"}, {"y"});
  auto* entry = model.proto().add_metadata_props();
  entry->set_key("labels");
  entry->set_value("[\"a\"]");
  return model.Output("y").File();
}

}  // namespace

Files OnnxSeeds() {
  Files out;
  AddPlainNodes(out);
  for (const OneNode& node : kNodes) out.push_back(FileOf(node));
  for (const auto& make : {Flattening, Block, Attention, Constants}) out.push_back(make());
  return out;
}

}  // namespace forge::fuzz
