// SPDX-License-Identifier: Apache-2.0
// Reads ZIP archives with stored and deflated entries, as numpy.savez and zip write them.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace forge {

struct ZipEntry {
  std::string name;
  Bytes content;
};

// Reads every entry (folders left out) of the archive in `file`; checksums are verified. Memory
// follows what the entries hold, not what they claim.
//   where: names the archive in messages
//   errors: DataLoss naming the entry (encrypted, another compression, damaged, split archives)
//   source: PKWARE APPNOTE 6.3.10; ZIP64 included
absl::StatusOr<std::vector<ZipEntry>> ReadZip(const Bytes& file, std::string_view where);

}  // namespace forge
