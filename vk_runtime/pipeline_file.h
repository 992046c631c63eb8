// SPDX-License-Identifier: Apache-2.0
// The file that keeps a driver's compiled kernels between runs.
#pragma once
#include <array>
#include <filesystem>
#include <set>

#include "vk_runtime/queries.h"

namespace forge::vk {

// What the driver gave, and which kernels are in it.
struct PipelineFile {
  std::set<uint64_t> kernels;  // hashes of their SPIR-V
  std::vector<uint8_t> blob;   // of vkGetPipelineCacheData
};

// CacheFolder()/vk-DEVICE-DRIVER.bin; empty when there is no cache folder.
std::filesystem::path PipelineFilePath(const Queries& q);
// The content of a file written by this very driver. An absent, foreign, damaged or truncated file
// is an empty one: it is written anew.
PipelineFile ReadPipelineFile(const std::filesystem::path& path, const Queries& q);
// Replaces the file whole.  errors: Internal with path and reason
absl::Status WritePipelineFile(const std::filesystem::path& path, const Queries& q,
                               const PipelineFile& file);

}  // namespace forge::vk
