// SPDX-License-Identifier: Apache-2.0
// Small files of the cache folder. Their absence or damage costs only time.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"

namespace forge {

// Returns the content of a file; empty when it is absent or cannot be read.
std::string ReadCacheFile(const std::filesystem::path& path);
// Returns the lines after the first one, which must equal `title`; empty when it does not. An
// incomplete last line is left out.
std::vector<std::string> LinesBehind(std::string_view title, const std::string& text);
// Replaces the file atomically, without waiting for the disk; does nothing when `path` is empty.
//   errors: Internal with path and reason
absl::Status WriteCacheFile(const std::filesystem::path& path, std::string_view content);

}  // namespace forge
