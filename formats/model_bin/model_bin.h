// SPDX-License-Identifier: Apache-2.0
// Forge's own model file, model.bin: a verified graph and weights that are mapped, not read.
// docs/model-format.md describes every byte.
#pragma once
#include <filesystem>
#include <string_view>

#include "base/platform.h"
#include "ir/graph/module.h"

namespace forge {

struct ModelWriteOptions {
  bool external_weights = false;  // in PATH.weights, beside the model
  WriteProgress progress = {};    // told of bytes written
};

// Writes everything the module holds, whole or not at all; equal weights are stored once.
//   errors: Internal (cannot write), InvalidArgument (symbols, variables or bodies of another
//   module, more than 2 GiB of graph)
absl::Status WriteModel(const ir::Module& module, const std::filesystem::path& path,
                        const ModelWriteOptions& options = {});

struct ModelReadOptions {
  bool verify_weights = false;  // reads them all and compares their checksums
};

// Opens a model file; its weights stay mapped and are shared by everything made of the module.
//   errors: NotFound; DataLoss with file and place (damaged, cut off, of a newer major version, an
//   operator or attribute that is not known)
absl::StatusOr<std::unique_ptr<ir::Module>> ReadModel(const std::filesystem::path& path,
                                                      const ModelReadOptions& options = {});

// The same for a file in memory, which must hold its weights.
//   where: names it in messages
absl::StatusOr<std::unique_ptr<ir::Module>> ReadModel(const Bytes& file, std::string_view where,
                                                      const ModelReadOptions& options = {});

// Does the content start as a model.bin does?
bool IsModelFile(std::span<const uint8_t> content);

}  // namespace forge
