// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/cache_file.h"

#include <xxhash.h>

#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/platform.h"

namespace forge::vk {
namespace {

constexpr size_t kWord = sizeof(uint64_t);
constexpr size_t kKeyDigits = 16;

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

std::string ReadCacheFile(const std::filesystem::path& path) {
  const absl::StatusOr<Bytes> bytes = MapFile(path);
  return bytes.ok() ? std::string(bytes->data(), bytes->data() + bytes->size()) : std::string();
}

std::vector<std::string> LinesBehind(std::string_view title, const std::string& text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  lines.pop_back();
  if (lines.empty() || lines[0] != title) return {};
  lines.erase(lines.begin());
  return lines;
}

absl::Status WriteCacheFile(const std::filesystem::path& path, std::string_view content) {
  if (path.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) return Internal("{}: {}", path.parent_path().string(), error.message());
  return WriteFile(path,
                   std::span(reinterpret_cast<const uint8_t*>(content.data()), content.size()));
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

TunedFile::TunedFile(const Queries& q, bool use_file)
    : path_(use_file ? CacheFile(q, ".tuned") : ""), title_(CacheTitle(q, "tuned 1")) {
  Load();
}

// Lines of a key and a choice; what is read takes precedence over nothing that is known.
void TunedFile::Load() {
  for (const std::string& line : LinesBehind(title_, ReadCacheFile(path_))) {
    uint64_t key = 0;
    if (line.size() > kKeyDigits + 1 && line[kKeyDigits] == ' ' &&
        absl::SimpleHexAtoi(line.substr(0, kKeyDigits), &key))
      choices_.emplace(key, line.substr(kKeyDigits + 1));
  }
}

std::optional<std::string> TunedFile::Find(uint64_t key) const {
  const std::lock_guard lock(mutex_);
  const auto at = choices_.find(key);
  if (at == choices_.end()) return std::nullopt;
  return at->second;
}

bool TunedFile::empty() const {
  const std::lock_guard lock(mutex_);
  return choices_.empty();
}

std::optional<codegen::Choice> TunedFile::Preferred(const codegen::Region& region,
                                                    const codegen::Program& by_default) const {
  if (empty()) return std::nullopt;
  const std::optional<std::string> text = Find(codegen::TuningKey(by_default));
  if (!text) return std::nullopt;
  absl::StatusOr<codegen::Choice> choice = codegen::ParseChoice(region, *text);
  if (!choice.ok()) return std::nullopt;
  return *std::move(choice);
}

absl::Status TunedFile::Put(uint64_t key, const std::string& choice) {
  const std::lock_guard lock(mutex_);
  choices_[key] = choice;
  const FolderLock alone(path_.parent_path());
  Load();
  std::string text = title_ + "\n";
  for (const auto& [k, c] : choices_)
    fmt::format_to(std::back_inserter(text), "{:016x} {}\n", k, c);
  return WriteCacheFile(path_, text);
}

}  // namespace forge::vk
