// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fetched_cuda.h"

#include "base/platform.h"

namespace forge {

namespace fs = std::filesystem;

std::optional<fs::path> FetchedCuda() {
  std::error_code error;
  for (const auto& python : fs::directory_iterator(CacheFolder() / "cuda-venv/lib", error)) {
    const fs::path packages = python.path() / "site-packages";
    if (fs::exists(packages / "nvidia", error)) return packages;
  }
  return std::nullopt;
}

}  // namespace forge
