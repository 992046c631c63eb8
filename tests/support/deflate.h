// SPDX-License-Identifier: Apache-2.0
// Compressed content for the tests of file readers.
#pragma once
#include <zlib.h>

#include <string>

namespace forge {

inline std::string DeflatedAs(int window_bits, const std::string& content) {
  std::string out(compressBound(content.size()) + 64, '\0');  // 64: the header of gzip
  z_stream z = {};
  deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));  // NOLINT: only read
  z.avail_in = static_cast<uInt>(content.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}
// Without a header, as in ZIP archives.
inline std::string Deflated(const std::string& content) { return DeflatedAs(-MAX_WBITS, content); }
inline std::string Gzipped(const std::string& content) {
  return DeflatedAs(MAX_WBITS + 16, content);
}

}  // namespace forge
