// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/replace_weights.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <map>

#include "base/platform.h"
#include "formats/onnx/tensor.h"

namespace forge {
namespace {

absl::Status Replace(onnx::TensorProto& tensor, const ir::HostValue& value) {
  FORGE_ASSIGN_OR_RETURN(const DType dtype, formats::OnnxDType(tensor.data_type()));
  if (dtype != value.dtype() || !std::equal(tensor.dims().begin(), tensor.dims().end(),
                                            value.shape().begin(), value.shape().end()))
    return InvalidArgument("initialiser '{}' is not {}", tensor.name(), value.type().ToText());
  onnx::TensorProto out;
  out.set_name(tensor.name());
  out.set_data_type(tensor.data_type());
  *out.mutable_dims() = tensor.dims();
  if (tensor.has_doc_string()) out.set_doc_string(tensor.doc_string());
  out.set_raw_data(value.bytes().data(), value.bytes().size());
  tensor.Swap(&out);
  return absl::OkStatus();
}

}  // namespace

absl::Status ReplaceOnnxWeights(const std::filesystem::path& from, const NamedValues& weights,
                                const std::filesystem::path& to) {
  FORGE_ASSIGN_OR_RETURN(const Bytes file, MapFile(from));
  onnx::ModelProto model;
  if (file.size() > INT32_MAX || !model.ParseFromArray(file.data(), static_cast<int>(file.size())))
    return DataLoss("{}: not an ONNX model, or a damaged one", from.string());
  std::map<std::string, onnx::TensorProto*> initialisers;
  for (onnx::TensorProto& t : *model.mutable_graph()->mutable_initializer())
    initialisers[t.name()] = &t;
  for (const auto& [name, value] : weights) {
    const auto found = initialisers.find(name);
    if (found == initialisers.end())
      return InvalidArgument("{} has no initialiser '{}'", from.string(), name);
    FORGE_RETURN_IF_ERROR(Replace(*found->second, value));
  }
  const bool external = std::ranges::any_of(initialisers, [](const auto& entry) {
    return entry.second->data_location() == onnx::TensorProto::EXTERNAL;
  });
  std::error_code ignored;
  if (external &&
      !std::filesystem::equivalent(std::filesystem::absolute(from).parent_path(),
                                   std::filesystem::absolute(to).parent_path(), ignored))
    return InvalidArgument("{} keeps weights in files beside it: write {} to its folder",
                           from.string(), to.filename().string());
  if (model.ByteSizeLong() > INT32_MAX)
    return InvalidArgument("{}: more than 2 GiB, the limit of protobuf", to.string());
  return WriteFile(to, AsBytes(model.SerializeAsString()));
}

}  // namespace forge
