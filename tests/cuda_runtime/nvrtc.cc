// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_runtime/nvrtc.h"

namespace forge::cuda {

absl::StatusOr<std::shared_ptr<const Nvrtc>> FetchedNvrtc() {
  namespace fs = std::filesystem;
  std::error_code error;
  for (const auto& python : fs::directory_iterator(CacheFolder() / "cuda-venv/lib", error)) {
    const fs::path packages = python.path() / "site-packages";
    if (!fs::exists(packages / "nvidia", error)) continue;
    const DefaultEnvironment path("FORGE_CUDA_PATH", packages.c_str());
    return Nvrtc::Load();
  }
  if (Environment("FORGE_CUDA_PATH")) return Nvrtc::Load();
  return absl::NotFoundError("there is no NVRTC: run tests/lab/fetch-cuda");
}

}  // namespace forge::cuda
