// SPDX-License-Identifier: Apache-2.0
// Files in the cache folder that belong to one driver and one device: paths, title lines, and the
// file of compiled pipelines.
#pragma once
#include <filesystem>

#include "absl/container/flat_hash_set.h"
#include "base/cache_file.h"
#include "vk_runtime/api/queries.h"

namespace forge::vk {

// The path CacheFolder()/vk-DEVICE-DRIVER-MODEL`extension`; empty when there is no cache folder.
std::filesystem::path CacheFile(const Queries& q, std::string_view extension);
// The start of the first line of a file of `what`; it differs between drivers.
std::string CacheTitle(const Queries& q, std::string_view what);
// The pipeline cache of a driver, and the kernels that it contains.
struct PipelineFile {
  absl::flat_hash_set<uint64_t> kernels;  // hashes of their SPIR-V
  std::vector<uint8_t> blob;              // data of vkGetPipelineCacheData
};
// Reads a file that this driver wrote. An absent, foreign, damaged or truncated file reads as empty
// and is replaced by the next write.
PipelineFile ReadPipelineFile(const std::filesystem::path& path, const Queries& q);
// Writes the file.
//   errors: as WriteCacheFile
absl::Status WritePipelineFile(const std::filesystem::path& path, const Queries& q,
                               const PipelineFile& file);

}  // namespace forge::vk
