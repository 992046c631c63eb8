// SPDX-License-Identifier: Apache-2.0
// Files that keep between runs what one driver told of one device: where they lie, how they begin,
// and the one with its compiled kernels.
#pragma once
#include <filesystem>
#include <set>

#include "base/cache_file.h"
#include "vk_runtime/api/queries.h"

namespace forge::vk {

// CacheFolder()/vk-DEVICE-DRIVER-MODEL`extension`; empty when there is no cache folder.
std::filesystem::path CacheFile(const Queries& q, std::string_view extension);
// How the first line of a file of `what` begins; that of another driver begins otherwise.
std::string CacheTitle(const Queries& q, std::string_view what);
// What the driver gave, and which kernels are in it.
struct PipelineFile {
  std::set<uint64_t> kernels;  // hashes of their SPIR-V
  std::vector<uint8_t> blob;   // of vkGetPipelineCacheData
};
// The content of a file written by this very driver. An absent, foreign, damaged or truncated file
// is an empty one: it is written anew.
PipelineFile ReadPipelineFile(const std::filesystem::path& path, const Queries& q);
// errors: as WriteCacheFile
absl::Status WritePipelineFile(const std::filesystem::path& path, const Queries& q,
                               const PipelineFile& file);

}  // namespace forge::vk
