// SPDX-License-Identifier: Apache-2.0
// Reads tensors of ONNX files, in every encoding of the format.
#pragma once
#include <onnx/onnx_pb.h>

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "ir/type/host_value.h"

namespace forge::formats {

// The files with a model's external data. Each is mapped once; names and links that lead outside
// the model's folder are errors.
class ExternalFiles {
 public:
  // folder: of the model; empty when the model was not read from a file
  explicit ExternalFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}
  // Returns the content of a file.
  //   errors: DataLoss (outside the folder, missing, no folder)
  absl::StatusOr<Bytes> Find(const std::string& location);

 private:
  std::filesystem::path folder_;
  std::map<std::string, Bytes> mapped_;
};

// Returns the element type of a TensorProto.DataType.
//   errors: DataLoss (unknown, or not supported by Forge)
absl::StatusOr<DType> OnnxDType(int32_t data_type);
// The same by name ("FLOAT"), as version 1 of Cast spells it.
absl::StatusOr<DType> OnnxDType(std::string_view name);

// Returns the elements of `tensor` and takes its raw data; external data is a view of the mapped
// file.
//   errors: DataLoss (inconsistent sizes, overflow); the caller adds the name of the
//   tensor
absl::StatusOr<ir::HostValue> TakeOnnxTensor(onnx::TensorProto& tensor, ExternalFiles& files);

}  // namespace forge::formats
