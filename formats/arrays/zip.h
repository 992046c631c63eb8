// SPDX-License-Identifier: Apache-2.0
// Reads ZIP archives with stored and deflated entries, as numpy.savez and zip write them.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace forge {

// A decompressed entry of an archive.
struct ZipEntry {
  std::string name;
  Bytes content;
};

// Reads all entries of the archive in `file`, except folders, and verifies their checksums. Memory
// is allocated for the actual contents, not for the declared sizes.
//   where: the name of the archive in messages
//   errors: DataLoss naming the entry (encrypted, another compression, damaged, split archives)
//   source: PKWARE APPNOTE 6.3.10; ZIP64 included
absl::StatusOr<std::vector<ZipEntry>> ReadZip(const Bytes& file, std::string_view where);

}  // namespace forge
