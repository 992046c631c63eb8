// SPDX-License-Identifier: Apache-2.0
#include "cuda_runtime/api/libraries.h"

#include <algorithm>

#include "absl/strings/str_split.h"

namespace forge::cuda {
namespace {

namespace fs = std::filesystem;

void AddBelow(const fs::path& folder, std::vector<fs::path>& out) {
  out.push_back(folder);
  out.push_back(folder / "lib");
  out.push_back(folder / "lib64");
  std::error_code error;
  std::vector<fs::path> wheels;
  for (const auto& entry : fs::directory_iterator(folder / "nvidia", error))
    wheels.push_back(entry.path() / "lib");
  std::sort(wheels.begin(), wheels.end());
  out.insert(out.end(), wheels.begin(), wheels.end());
}

}  // namespace

std::vector<fs::path> CudaFolders() {
  std::vector<fs::path> folders;
  const std::string path = Environment("FORGE_CUDA_PATH").value_or("");
  for (const std::string& word : std::vector<std::string>(absl::StrSplit(path, ':')))
    if (!word.empty()) AddBelow(fs::path(word), folders);
  return folders;
}

absl::StatusOr<std::shared_ptr<SharedLibrary>> OpenCudaLibrary(std::string_view what,
                                                               std::span<const char* const> names,
                                                               std::string_view wheel) {
  std::error_code error;
  for (const fs::path& folder : CudaFolders())
    for (const char* name : names)
      if (fs::exists(folder / name, error)) return SharedLibrary::Open((folder / name).string());
  for (const char* name : names)
    if (auto library = SharedLibrary::Open(name); library.ok()) return library;
  return Unavailable(
      "{} is not installed: no {} in FORGE_CUDA_PATH or among the libraries of the system; it "
      "comes with the CUDA toolkit, and with pip install {}",
      what, names.front(), wheel);
}

}  // namespace forge::cuda
