// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_runtime/nvrtc.h"

#include <dlfcn.h>

#include "tests/support/fetched_cuda.h"

namespace forge::cuda {
namespace {

namespace fs = std::filesystem;

// Under AddressSanitizer the loader does not know who opens a library: NVRTC would not find the one
// that lies beside it unless it is loaded already. What stays loaded can be named in
// tests/lsan.supp.
void LoadForGood(const fs::path& packages) {
  std::error_code error;
  for (const auto& wheel : fs::directory_iterator(packages / "nvidia", error))
    for (const auto& file : fs::directory_iterator(wheel.path() / "lib", error))
      if (file.path().filename().string().starts_with("libnvrtc"))
        dlopen(file.path().c_str(), RTLD_NOW | RTLD_NODELETE);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Nvrtc>> FetchedNvrtc() {
  if (const auto packages = FetchedCuda()) {
    LoadForGood(*packages);
    const DefaultEnvironment path("FORGE_CUDA_PATH", packages->c_str());
    return Nvrtc::Load();
  }
  if (Environment("FORGE_CUDA_PATH")) return Nvrtc::Load();
  return absl::NotFoundError("there is no NVRTC: run tests/lab/fetch-cuda");
}

}  // namespace forge::cuda
