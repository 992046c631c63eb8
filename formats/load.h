// SPDX-License-Identifier: Apache-2.0
// Opens a model of any format that Forge reads.
#pragma once
#include <filesystem>

#include "formats/model_bin/model_bin.h"
#include "formats/onnx/importer.h"

namespace forge {

// Options for each format.
struct LoadOptions {
  OnnxOptions onnx = {};
  ModelReadOptions model = {};
};

// Reads a model.bin, identified by its first bytes, or an ONNX model, identified by the extension
// .onnx or by its content.
//   errors: NotFound, DataLoss (damaged, or neither format), InvalidArgument (options that do not
//   fit the model)
absl::StatusOr<std::unique_ptr<ir::Module>> LoadModel(const std::filesystem::path& path,
                                                      const LoadOptions& options = {});

// Reads a model from the content of a file.
//   where: the name used in messages     errors: also DataLoss (external data)
absl::StatusOr<std::unique_ptr<ir::Module>> LoadModel(const Bytes& file, std::string_view where,
                                                      const LoadOptions& options = {});

}  // namespace forge
