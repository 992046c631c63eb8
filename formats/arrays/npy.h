// SPDX-License-Identifier: Apache-2.0
// NumPy files: one array (.npy) and archives of named arrays (.npz).
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/type/host_value.h"

namespace forge {

// Parses the content of a .npy file, of either byte order and memory order. The result is dense,
// row-major and in the byte order of the host; it is a view of `file` where no conversion is
// needed.
//   where: the name used in messages
//   errors: DataLoss with the byte position (also for object, byte string, date and structured
//   types) source: numpy.lib.format, versions 1.0 to 3.0
absl::StatusOr<ir::HostValue> ParseNpy(const Bytes& file, std::string_view where);

// Reads a .npy file. If `NAME.json` exists beside an unsigned `NAME.npy` and gives a "dtype" that
// NumPy does not have, the elements are the raw bits of that type (one element per byte for types
// narrower than a byte).
//   errors: NotFound, DataLoss
absl::StatusOr<ir::HostValue> ReadNpy(const std::filesystem::path& path);

// Writes a .npy file (version 1.0) atomically; element types that NumPy does not have are written
// as ReadNpy reads them. Removes a `.json` beside it whose "dtype" no longer applies.
// Strings are written as text of the length of the longest.
//   errors: Internal (cannot write), InvalidArgument (no tensor, a string that is no UTF-8)
absl::Status WriteNpy(const std::filesystem::path& path, const ir::HostValue& value);

// The arrays of a .npz archive in its order; names without ".npy".
using NamedValues = std::vector<std::pair<std::string, ir::HostValue>>;

// Parses the content of a .npz archive.
//   where: the name used in messages     errors: DataLoss naming archive and entry
absl::StatusOr<NamedValues> ParseNpz(const Bytes& file, std::string_view where);

// Reads a .npz archive.  errors: NotFound, DataLoss
absl::StatusOr<NamedValues> ReadNpz(const std::filesystem::path& path);

}  // namespace forge
