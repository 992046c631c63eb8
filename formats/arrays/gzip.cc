// SPDX-License-Identifier: Apache-2.0
#include "formats/arrays/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace forge {
namespace {

constexpr uint64_t kFirstSpace = 1 << 20, kMostAtOnce = 1 << 30;  // bytes
constexpr int kGzipOnly = 16 + MAX_WBITS;

struct EndInflate {
  void operator()(z_stream* z) const { inflateEnd(z); }
};

// Unpacks one member into `out` from `filled` on, which grows as needed.
//   returns false at the end of the space that is allowed
absl::StatusOr<bool> InflateMember(z_stream& z, std::vector<uint8_t>& out, uint64_t& filled,
                                   uint64_t limit) {
  for (;;) {
    if (filled == out.size()) {
      if (filled > limit) return false;
      out.resize(std::min(std::max(kFirstSpace, 2 * filled), limit + 1));
    }
    const uint64_t space = std::min<uint64_t>(out.size() - filled, kMostAtOnce);
    z.next_out = out.data() + filled;
    z.avail_out = static_cast<uInt>(space);
    const int result = inflate(&z, Z_NO_FLUSH);
    filled += space - z.avail_out;
    if (result == Z_STREAM_END) return filled <= limit;
    if (result == Z_BUF_ERROR || (result == Z_OK && z.avail_in == 0 && z.avail_out != 0))
      return DataLoss("it is truncated");
    if (result != Z_OK) return DataLoss("{}", z.msg != nullptr ? z.msg : "damaged");
  }
}

}  // namespace

bool IsGzip(const Bytes& file) {
  return file.size() >= 2 && file.data()[0] == 0x1f && file.data()[1] == 0x8b;
}

absl::StatusOr<Bytes> Gunzip(const Bytes& file, std::string_view where, uint64_t limit) {
  if (file.size() > UINT32_MAX) return DataLoss("{}: gzip files beyond 4 GiB are not read", where);
  z_stream z = {};
  if (inflateInit2(&z, kGzipOnly) != Z_OK) return Internal("{}: cannot start to unpack", where);
  const std::unique_ptr<z_stream, EndInflate> end(&z);
  z.next_in = const_cast<Bytef*>(file.data());  // NOLINT: only read
  z.avail_in = static_cast<uInt>(file.size());
  std::vector<uint8_t> out;
  uint64_t filled = 0;
  do {
    const absl::StatusOr<bool> fits = InflateMember(z, out, filled, limit);
    if (!fits.ok()) return DataLoss("{}: damaged gzip file: {}", where, Message(fits.status()));
    if (!*fits) return DataLoss("{}: unpacks to more than {} bytes", where, limit);
  } while (z.avail_in != 0 && inflateReset(&z) == Z_OK);
  out.resize(filled);
  return Bytes(std::move(out));
}

}  // namespace forge
