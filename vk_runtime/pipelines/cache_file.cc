// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/pipelines/cache_file.h"

#include <xxhash.h>

#include <cstring>

#include "absl/strings/str_replace.h"
#include "base/platform.h"

namespace forge::vk {
namespace {

constexpr size_t kWord = sizeof(uint64_t);

std::string HexOf(const uint8_t (&bytes)[VK_UUID_SIZE]) {
  std::string s;
  for (uint8_t b : bytes) fmt::format_to(std::back_inserter(s), "{:02x}", b);
  return s;
}

// A driver may be built anew without another version: what it compiled is then of no use to it.
std::string PipelineTitle(const Queries& q) {
  return fmt::format("{}, {:x}:{:x} {}\n", CacheTitle(q, "kernels 1"), q.properties.vendorID,
                     q.properties.deviceID, HexOf(q.properties.pipelineCacheUUID));
}

}  // namespace

std::filesystem::path CacheFile(const Queries& q, std::string_view extension) {
  const std::filesystem::path folder = CacheFolder();
  if (folder.empty()) return {};
  // Some drivers give all devices one UUID.
  const VkPhysicalDeviceProperties& p = q.properties;
  const std::string model = fmt::format("{:x}:{:x} {}", p.vendorID, p.deviceID, p.deviceName);
  return folder / fmt::format("vk-{}-{}-{:016x}{}", HexOf(q.id.deviceUUID), HexOf(q.id.driverUUID),
                              XXH64(model.data(), model.size(), 0), extension);
}

std::string CacheTitle(const Queries& q, std::string_view what) {
  const std::string name = absl::StrReplaceAll(q.properties.deviceName, {{"\n", " "}});
  return fmt::format("forge {} of {} driver {:#x}", what, name, q.properties.driverVersion);
}

// After the title: a checksum of what follows it, the number of kernels, their hashes, the blob.
PipelineFile ReadPipelineFile(const std::filesystem::path& path, const Queries& q) {
  const std::string content = ReadCacheFile(path), title = PipelineTitle(q);
  const size_t kernels = title.size() + 2 * kWord;  // where their hashes begin
  if (!content.starts_with(title) || content.size() < kernels) return {};
  const auto word = [&](size_t at) {
    uint64_t w;
    std::memcpy(&w, content.data() + at, kWord);
    return w;
  };
  const std::string_view summed = std::string_view(content).substr(title.size() + kWord);
  if (XXH64(summed.data(), summed.size(), 0) != word(title.size())) return {};
  const uint64_t count = word(kernels - kWord);
  if (count > (content.size() - kernels) / kWord) return {};
  const size_t blob = kernels + count * kWord;
  PipelineFile file;
  for (size_t at = kernels; at < blob; at += kWord) file.kernels.insert(word(at));
  file.blob.assign(content.begin() + static_cast<ptrdiff_t>(blob), content.end());
  return file;
}

absl::Status WritePipelineFile(const std::filesystem::path& path, const Queries& q,
                               const PipelineFile& file) {
  std::vector<uint64_t> words = {file.kernels.size()};
  words.insert(words.end(), file.kernels.begin(), file.kernels.end());
  std::string summed(reinterpret_cast<const char*>(words.data()), words.size() * kWord);
  summed.append(file.blob.begin(), file.blob.end());
  const uint64_t checksum = XXH64(summed.data(), summed.size(), 0);
  return WriteCacheFile(
      path, PipelineTitle(q).append(reinterpret_cast<const char*>(&checksum), kWord) + summed);
}

}  // namespace forge::vk
