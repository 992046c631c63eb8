// SPDX-License-Identifier: Apache-2.0
// model.bin, the model format of Forge: a verified graph, and weights that are mapped.
// docs/model-format.md specifies every byte.
#pragma once
#include <filesystem>
#include <string_view>

#include "base/platform.h"
#include "ir/graph/module.h"

namespace forge {

// How to write a model.
struct ModelWriteOptions {
  bool external_weights = false;  // write the weights to PATH.weights
  WriteProgress progress = {};    // called with the number of bytes written
};

// Writes a module atomically; equal weights are stored once.
//   errors: Internal (cannot write), InvalidArgument (symbols, variables or bodies of another
//   module, more than 2 GiB of graph)
absl::Status WriteModel(const ir::Module& module, const std::filesystem::path& path,
                        const ModelWriteOptions& options = {});

// How to read a model.
struct ModelReadOptions {
  bool verify_weights = false;  // reads all weights and compares their checksums
};

// Opens a model file. The weights stay mapped and are shared by everything created from the module.
//   errors: NotFound; DataLoss with file and place (damaged, truncated, of a newer major version,
//   an unknown operator or attribute)
absl::StatusOr<std::unique_ptr<ir::Module>> ReadModel(const std::filesystem::path& path,
                                                      const ModelReadOptions& options = {});

// Reads a model file in memory, which must include its weights.
//   where: the name used in messages
absl::StatusOr<std::unique_ptr<ir::Module>> ReadModel(const Bytes& file, std::string_view where,
                                                      const ModelReadOptions& options = {});

// Returns true when the content starts with the magic number of model.bin.
bool IsModelFile(std::span<const uint8_t> content);

}  // namespace forge
