// SPDX-License-Identifier: Apache-2.0
// Where the libraries of a CUDA toolkit are found: FORGE_CUDA_PATH, then the system.
#pragma once
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "base/platform.h"

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

}  // namespace forge::cuda
