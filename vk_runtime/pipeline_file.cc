// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/pipeline_file.h"

#include <xxhash.h>

#include <cstring>

#include "base/platform.h"

namespace forge::vk {
namespace {

constexpr std::array<char, 8> kMagic = {'F', 'O', 'R', 'G', 'E', 'V', 'K', '1'};

struct Header {
  std::array<char, 8> magic;
  uint32_t vendor, device, driver_version, kernel_count;
  uint8_t cache_uuid[VK_UUID_SIZE];
  uint64_t blob_bytes;
  uint64_t checksum;  // XXH64 of all that follows
};
static_assert(sizeof(Header) == 56);

Header HeaderFor(const Queries& q) {
  Header h{};
  h.magic = kMagic;
  h.vendor = q.properties.vendorID;
  h.device = q.properties.deviceID;
  h.driver_version = q.properties.driverVersion;
  std::memcpy(h.cache_uuid, q.properties.pipelineCacheUUID, VK_UUID_SIZE);
  return h;
}

std::string Hex(const uint8_t (&bytes)[VK_UUID_SIZE]) {
  std::string s;
  for (uint8_t b : bytes) fmt::format_to(std::back_inserter(s), "{:02x}", b);
  return s;
}

}  // namespace

std::filesystem::path PipelineFilePath(const Queries& q) {
  const std::filesystem::path folder = CacheFolder();
  if (folder.empty()) return {};
  return folder / fmt::format("vk-{}-{}.bin", Hex(q.id.deviceUUID), Hex(q.id.driverUUID));
}

PipelineFile ReadPipelineFile(const std::filesystem::path& path, const Queries& q) {
  if (path.empty()) return {};
  const absl::StatusOr<Bytes> bytes = MapFile(path);
  Header h;
  if (!bytes.ok() || bytes->size() < sizeof(h)) return {};
  std::memcpy(&h, bytes->data(), sizeof(h));
  Header expected = HeaderFor(q);
  expected.kernel_count = h.kernel_count;
  expected.blob_bytes = h.blob_bytes;
  expected.checksum = h.checksum;
  if (std::memcmp(&h, &expected, sizeof(h)) != 0) return {};
  const uint64_t rest = bytes->size() - sizeof(h);
  const uint64_t index = uint64_t{h.kernel_count} * sizeof(uint64_t);
  if (index > rest || h.blob_bytes != rest - index) return {};
  const uint8_t* at = bytes->data() + sizeof(h);
  if (XXH64(at, rest, 0) != h.checksum) return {};
  PipelineFile file;
  for (uint32_t i = 0; i < h.kernel_count; ++i) {
    uint64_t hash;
    std::memcpy(&hash, at + i * sizeof(hash), sizeof(hash));
    file.kernels.insert(hash);
  }
  file.blob.assign(at + index, at + rest);
  return file;
}

absl::Status WritePipelineFile(const std::filesystem::path& path, const Queries& q,
                               const PipelineFile& file) {
  std::vector<uint8_t> content(sizeof(Header));
  const auto append = [&](const void* data, size_t n) {
    const auto* p = static_cast<const uint8_t*>(data);
    content.insert(content.end(), p, p + n);
  };
  for (uint64_t hash : file.kernels) append(&hash, sizeof(hash));
  append(file.blob.data(), file.blob.size());
  Header h = HeaderFor(q);
  h.kernel_count = static_cast<uint32_t>(file.kernels.size());
  h.blob_bytes = file.blob.size();
  h.checksum = XXH64(content.data() + sizeof(h), content.size() - sizeof(h), 0);
  std::memcpy(content.data(), &h, sizeof(h));
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) return Internal("{}: {}", path.parent_path().string(), error.message());
  return WriteFile(path, content);
}

}  // namespace forge::vk
