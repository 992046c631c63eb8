// SPDX-License-Identifier: Apache-2.0
// Opens a model of any kind that Forge reads.
#pragma once
#include <filesystem>

#include "formats/model_bin/model_bin.h"
#include "formats/onnx/importer.h"

namespace forge {

struct LoadOptions {
  OnnxOptions onnx = {};
  ModelReadOptions model = {};
};

// Reads a model.bin, told by its first bytes, or an ONNX model, told by its name's end (.onnx) or
// else by its content.
//   errors: NotFound, DataLoss (damaged, or no model of these kinds), InvalidArgument (options that
//   do not fit the model)
absl::StatusOr<std::unique_ptr<ir::Module>> LoadModel(const std::filesystem::path& path,
                                                      const LoadOptions& options = {});

// The same for the content of a file; external data is DataLoss.
//   where: names it in messages
absl::StatusOr<std::unique_ptr<ir::Module>> LoadModel(const Bytes& file, std::string_view where,
                                                      const LoadOptions& options = {});

}  // namespace forge
