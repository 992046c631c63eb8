// SPDX-License-Identifier: Apache-2.0
// Small ONNX models, built in the test and given to the importer as a file's bytes.
#pragma once
#include <onnx/onnx_pb.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "formats/onnx/importer.h"
#include "ir/type/host_value.h"

namespace forge {

class OnnxModel {
 public:
  explicit OnnxModel(int64_t opset = 17);

  // A dimension is a number, or a name that is no number.
  OnnxModel& Input(std::string_view name, const std::vector<std::string>& shape,
                   int32_t type = onnx::TensorProto::FLOAT);
  OnnxModel& Output(std::string_view name, int32_t type = 0);
  onnx::NodeProto& Node(std::string_view op, std::vector<std::string> inputs,
                        std::vector<std::string> outputs);
  onnx::TensorProto& Initializer(std::string_view name, int32_t type, std::vector<int64_t> dims);
  OnnxModel& Floats(std::string_view name, std::vector<int64_t> dims, std::vector<float> values);
  OnnxModel& Ints(std::string_view name, std::vector<int64_t> dims, std::vector<int64_t> values);

  onnx::GraphProto& graph() { return *model_.mutable_graph(); }
  onnx::ModelProto& proto() { return model_; }
  std::string File() const { return model_.SerializeAsString(); }
  absl::StatusOr<std::unique_ptr<ir::Module>> Import(const OnnxOptions& options = {}) const;

 private:
  onnx::ModelProto model_;
};

void Set(onnx::NodeProto& node, std::string_view name, int64_t value);
void Set(onnx::NodeProto& node, std::string_view name, float value);
void Set(onnx::NodeProto& node, std::string_view name, std::string_view value);
void Set(onnx::NodeProto& node, std::string_view name, std::vector<int64_t> value);
void Set(onnx::NodeProto& node, std::string_view name, const std::vector<float>& value);
void Set(onnx::NodeProto& node, std::string_view name, const std::vector<std::string>& value);
onnx::AttributeProto& Attribute(onnx::NodeProto& node, std::string_view name,
                                onnx::AttributeProto::AttributeType type);

absl::StatusOr<std::unique_ptr<ir::Module>> ImportBytes(std::string_view file,
                                                        const std::filesystem::path& folder = {},
                                                        const OnnxOptions& options = {});

ir::HostValue FloatTensor(std::vector<int64_t> shape, const std::vector<float>& values);
ir::HostValue IntTensor(std::vector<int64_t> shape, const std::vector<int64_t>& values);
// 0, 1, 2 ... as f32.
ir::HostValue Iota(std::vector<int64_t> shape);

// Imports the model, checks that it verifies, and evaluates "main".
absl::StatusOr<std::vector<ir::HostValue>> ImportAndRun(const OnnxModel& model,
                                                        const std::vector<ir::HostValue>& inputs);

}  // namespace forge
