// SPDX-License-Identifier: Apache-2.0
// Compiled kernels in the cache folder, one file each.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "base/status.h"

namespace forge::cuda {

// A kernel as the driver loads it.
struct KernelImage {
  std::string entry;
  std::string image;  // cubin, or PTX with its final zero
  std::string log;    // of the compiler
};

bool IsCubin(const KernelImage& image);  // rather than PTX

// Reads a file whose title is taken. An absent, foreign, damaged or truncated file reads as
// nothing, and is replaced by the next write.
std::optional<KernelImage> ReadKernelImage(const std::filesystem::path& path,
                                           absl::FunctionRef<bool(std::string_view title)> takes);
// Writes it atomically; does nothing when `path` is empty.
//   errors: as WriteCacheFile
absl::Status WriteKernelImage(const std::filesystem::path& path, std::string_view title,
                              const KernelImage& image);

}  // namespace forge::cuda
