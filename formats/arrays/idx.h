// SPDX-License-Identifier: Apache-2.0
// IDX files: one array, as MNIST and its successors are distributed.
#pragma once
#include <filesystem>
#include <string_view>

#include "ir/type/host_value.h"

namespace forge {

// Parses the content of an IDX file, gzipped or not. The result is row-major and in the byte order
// of the host.
//   where: the name used in messages
//   limits: 8 axes, 4 GiB
//   errors: DataLoss (another format, an unknown element type, sizes that do not fit the content)
//   source: yann.lecun.com/exdb/mnist, "The IDX file format"
absl::StatusOr<ir::HostValue> ParseIdx(const Bytes& file, std::string_view where);

// Reads an IDX file.  errors: NotFound, DataLoss
absl::StatusOr<ir::HostValue> ReadIdx(const std::filesystem::path& path);

}  // namespace forge
