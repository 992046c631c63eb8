// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace forge {

// A new folder that is removed, with all it holds, when the test ends.
class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "forge-test-XXXXXX").string();
    FORGE_CHECK(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  TempFolder(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
  // Writes a file of that name and gives its path.
  std::filesystem::path Write(std::string_view name, std::span<const uint8_t> content) const {
    std::ofstream(path_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(content.data()),
               static_cast<std::streamsize>(content.size()));
    return path_ / name;
  }
  std::filesystem::path Write(std::string_view name, std::string_view content) const {
    return Write(name, std::span(reinterpret_cast<const uint8_t*>(content.data()), content.size()));
  }

 private:
  std::filesystem::path path_;
};

}  // namespace forge
