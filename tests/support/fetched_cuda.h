// SPDX-License-Identifier: Apache-2.0
// NVIDIA's compiler as tests/lab/fetch-cuda leaves it.
#pragma once
#include <filesystem>
#include <optional>

namespace forge {

// A value for FORGE_CUDA_PATH; nothing where it was not fetched.
std::optional<std::filesystem::path> FetchedCuda();

}  // namespace forge
