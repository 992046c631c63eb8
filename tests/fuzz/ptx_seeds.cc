// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/fuzz/seeds.h"

#ifndef FORGE_SOURCE_DIR  // for tools that read the source without its build
#define FORGE_SOURCE_DIR "."
#endif

namespace forge::fuzz {

Files PtxSeeds() {
  const std::string head =
      ".version 9.5\n.target sm_100\n.address_size 64\n"
      ".extern .shared .align 16 .b8 dynamic_shared[];\n";
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(FORGE_SOURCE_DIR "/tests/ptx/kernels"))
    if (entry.path().extension() == ".ptx") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  Files files;
  for (const std::filesystem::path& path : paths) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    const std::string whole = text.str();
    for (size_t at = whole.find(".visible .entry"); at != std::string::npos;) {
      const size_t next = whole.find(".visible .entry", at + 1);
      files.push_back(head + whole.substr(at, next - at));
      at = next;
    }
  }
  return files;
}

}  // namespace forge::fuzz
