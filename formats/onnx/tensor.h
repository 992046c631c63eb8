// SPDX-License-Identifier: Apache-2.0
// Tensors of ONNX files in every encoding that the format has.
#pragma once
#include <onnx/onnx_pb.h>

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "ir/type/host_value.h"

namespace forge::formats {

// The files that hold a model's external data: each is mapped once, and none lies outside the
// model's folder, whatever its name or links say.
class ExternalFiles {
 public:
  // folder: the model's; empty when the model came without one
  explicit ExternalFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}
  // errors: DataLoss (outside the folder, missing, no folder)
  absl::StatusOr<Bytes> Find(const std::string& location);

 private:
  std::filesystem::path folder_;
  std::map<std::string, Bytes> mapped_;
};

// The element type of a TensorProto.DataType.  errors: DataLoss (unknown, or not held by Forge)
absl::StatusOr<DType> OnnxDType(int32_t data_type);
// The same by name ("FLOAT"), as the first version of Cast spells it.
absl::StatusOr<DType> OnnxDType(std::string_view name);

// The elements of `tensor`, which gives up its raw data; external data is viewed where it is
// mapped.
//   errors: DataLoss (sizes that do not agree, overflow, strings); the caller names the tensor
absl::StatusOr<ir::HostValue> TakeOnnxTensor(onnx::TensorProto& tensor, ExternalFiles& files);

}  // namespace forge::formats
