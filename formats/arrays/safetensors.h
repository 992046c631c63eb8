// SPDX-License-Identifier: Apache-2.0
// safetensors files: named arrays and a table of strings.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/type/host_value.h"

namespace forge {

// The content of a safetensors file.
struct Safetensors {
  std::vector<std::pair<std::string, ir::HostValue>> tensors;
  std::map<std::string, std::string> metadata = {};
};

// Writes a safetensors file atomically, tensors in the given order; each begins at a multiple of 8
// bytes where the dtypes before it allow it.
//   errors: Internal (cannot write), InvalidArgument (a dtype without a name in the format, two
//   tensors of one name)
//   source: huggingface/safetensors, "Format"
absl::Status WriteSafetensors(const std::filesystem::path& path, const Safetensors& content);

// Parses the content of a safetensors file; the tensors are views of `file`, in the order of their
// offsets.
//   where: the name used in messages
//   errors: DataLoss (damaged, truncated, overlapping, an unknown dtype)
absl::StatusOr<Safetensors> ParseSafetensors(const Bytes& file, std::string_view where);

// Reads a safetensors file.  errors: NotFound, DataLoss
absl::StatusOr<Safetensors> ReadSafetensors(const std::filesystem::path& path);

}  // namespace forge
