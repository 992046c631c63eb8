// SPDX-License-Identifier: Apache-2.0
// NumPy's files: one array (.npy) and archives of named arrays (.npz).
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/type/host_value.h"

namespace forge {

// Parses the content of a .npy file. Either byte order and memory order are read; the result is
// dense row-major in this machine's byte order and views `file` where no change was needed.
//   where: names the file in messages
//   errors: DataLoss with a byte position (also for object, text, date and structured types)
//   source: numpy.lib.format, versions 1.0 to 3.0
absl::StatusOr<ir::HostValue> ParseNpy(const Bytes& file, std::string_view where);

// Reads a .npy file. Where `NAME.json` lies beside an unsigned `NAME.npy` and states a "dtype" that
// NumPy lacks, the elements are raw bits of it (sub-byte types one per byte).
//   errors: NotFound, DataLoss
absl::StatusOr<ir::HostValue> ReadNpy(const std::filesystem::path& path);

// Writes a .npy file (1.0), whole or not at all; element types that NumPy lacks as ReadNpy reads
// them. A `.json` beside it that states a "dtype" and no longer applies is removed.
//   errors: Internal (cannot write), InvalidArgument (strings)
absl::Status WriteNpy(const std::filesystem::path& path, const ir::HostValue& value);

// The arrays of a .npz archive, in its order, named without ".npy".
using NamedValues = std::vector<std::pair<std::string, ir::HostValue>>;

// Parses the content of a .npz archive; `where` as for ParseNpy.
//   errors: DataLoss naming archive and entry
absl::StatusOr<NamedValues> ParseNpz(const Bytes& file, std::string_view where);

// Reads a .npz archive.  errors: NotFound, DataLoss
absl::StatusOr<NamedValues> ReadNpz(const std::filesystem::path& path);

}  // namespace forge
