// SPDX-License-Identifier: Apache-2.0
// Unpacks gzip files.
#pragma once
#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"

namespace forge {

// Returns true when the content starts with the magic number of gzip.
bool IsGzip(const Bytes& file);

// Unpacks all members of a gzip file and verifies their checksums. Memory is allocated for the
// actual content, not for a declared size.
//   where: the name used in messages     limit: bytes of the result
//   errors: DataLoss (damaged, truncated, beyond `limit`)     source: RFC 1952
absl::StatusOr<Bytes> Gunzip(const Bytes& file, std::string_view where, uint64_t limit);

}  // namespace forge
