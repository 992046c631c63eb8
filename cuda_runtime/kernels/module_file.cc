// SPDX-License-Identifier: Apache-2.0
#include "cuda_runtime/kernels/module_file.h"

#include <xxhash.h>

#include <array>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/cache_file.h"

namespace forge::cuda {

// Cubins are ELF files.
bool IsCubin(const KernelImage& image) {
  return image.image.starts_with(
      "\x7f"
      "ELF");
}

// A line: title; a line: hash of the rest and the sizes of its three texts; the texts.
std::optional<KernelImage> ReadKernelImage(const std::filesystem::path& path,
                                           absl::FunctionRef<bool(std::string_view title)> takes) {
  if (path.empty()) return std::nullopt;
  const std::string file = ReadCacheFile(path);
  const size_t first = file.find('\n');
  if (first == std::string::npos || !takes(std::string_view(file).substr(0, first)))
    return std::nullopt;
  const size_t second = file.find('\n', first + 1);
  if (second == std::string::npos) return std::nullopt;
  const std::vector<std::string> words =
      absl::StrSplit(file.substr(first + 1, second - first - 1), ' ');
  const std::string_view rest = std::string_view(file).substr(second + 1);
  uint64_t hash = 0;
  std::array<uint64_t, 3> sizes{};
  if (words.size() != 1 + sizes.size() || !absl::SimpleHexAtoi(words[0], &hash))
    return std::nullopt;
  uint64_t left = rest.size();
  for (size_t n = 0; n < sizes.size(); ++n) {
    if (!absl::SimpleAtoi(words[1 + n], &sizes[n]) || sizes[n] > left) return std::nullopt;
    left -= sizes[n];
  }
  if (left != 0 || XXH3_64bits(rest.data(), rest.size()) != hash) return std::nullopt;
  return KernelImage{.entry = std::string(rest.substr(0, sizes[0])),
                     .image = std::string(rest.substr(sizes[0], sizes[1])),
                     .log = std::string(rest.substr(sizes[0] + sizes[1]))};
}

absl::Status WriteKernelImage(const std::filesystem::path& path, std::string_view title,
                              const KernelImage& image) {
  const std::string rest = image.entry + image.image + image.log;
  const std::string head =
      fmt::format("{}\n{:016x} {} {} {}\n", title, XXH3_64bits(rest.data(), rest.size()),
                  image.entry.size(), image.image.size(), image.log.size());
  return WriteCacheFile(path, head + rest);
}

}  // namespace forge::cuda
