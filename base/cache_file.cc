// SPDX-License-Identifier: Apache-2.0
#include "base/cache_file.h"

#include "absl/strings/str_split.h"
#include "base/platform.h"

namespace forge {

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
  // A pipe would wait for a reader.
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error))
    return Internal("{}: is no regular file", path.string());
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) return Internal("{}: {}", path.parent_path().string(), error.message());
  const FileContent file{.path = path, .parts = {AsBytes(content)}, .flushed = false};
  return WriteFiles({&file, 1});
}

}  // namespace forge
