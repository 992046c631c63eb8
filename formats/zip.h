// SPDX-License-Identifier: Apache-2.0
// Reads ZIP archives with stored and deflated entries, as numpy.savez and zip write them. zlib does
// the decompression; the container is simple enough that a reader of ours, which checks every
// field, costs less than one more library in every build.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace forge {

struct ZipEntry {
  std::string name;
  Bytes content;  // views the archive when the entry is stored
};

// Reads every entry (folders left out) of the archive in `file`; checksums are verified.
//   where: names the archive in messages
//   errors: DataLoss naming the entry (encrypted, another compression, damaged, split archives)
//   source: PKWARE APPNOTE 6.3.10; ZIP64 included
absl::StatusOr<std::vector<ZipEntry>> ReadZip(const Bytes& file, std::string_view where);

}  // namespace forge
