// SPDX-License-Identifier: Apache-2.0
// Small files of the cache folder, whose absence or damage costs time and nothing else.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"

namespace forge {

// Nothing where there is no file, or none that can be read.
std::string ReadCacheFile(const std::filesystem::path& path);
// The lines of a text behind its first, which is `title`; none where it is another. A last line
// without its end is left out.
std::vector<std::string> LinesBehind(std::string_view title, const std::string& text);
// Replaces the file whole; nothing where `path` is empty.  errors: Internal with path and reason
absl::Status WriteCacheFile(const std::filesystem::path& path, std::string_view content);

}  // namespace forge
