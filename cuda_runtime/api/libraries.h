// SPDX-License-Identifier: Apache-2.0
// Where the libraries of a CUDA toolkit are found: FORGE_CUDA_PATH, then the system.
#pragma once
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "base/platform.h"
#include "base/status.h"

namespace forge::cuda {

// The folders of FORGE_CUDA_PATH (separated by ':'), and those below them that hold libraries: lib,
// lib64, and nvidia/*/lib, as PyPI's wheels have it.
std::vector<std::filesystem::path> CudaFolders();

// Opens the first of `names` that exists in a folder, else the first that the loader finds.
//   what: for messages; wheel: of PyPI, that has it
//   errors: Unavailable, naming FORGE_CUDA_PATH and the wheel
absl::StatusOr<std::shared_ptr<SharedLibrary>> OpenCudaLibrary(std::string_view what,
                                                               std::span<const char* const> names,
                                                               std::string_view wheel);

// Looks up a function.
//   what: for messages     errors: Unavailable (the library is older than the function)
template <class F>
absl::Status ResolveSymbol(const SharedLibrary& library, std::string_view what, const char* name,
                           F& function) {
  function = reinterpret_cast<F>(library.Symbol(name));
  if (function == nullptr) return Unavailable("{} is too old for Forge: it has no {}", what, name);
  return absl::OkStatus();
}

}  // namespace forge::cuda
