// SPDX-License-Identifier: Apache-2.0
// PNG and JPEG pictures.
#include <zlib.h>

#include <cstring>

#include "formats/images/image.h"
#include "tests/fuzz/fuzzer.h"

namespace {

uint32_t BigEndian(const uint8_t* p) {
  return uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 | p[3];
}

// Makes the checksums of a PNG's chunks true, so that what they protect is reached.
void RepairChunks(uint8_t* data, size_t size) {
  constexpr size_t kSignature = 8, kName = 4, kFrame = 12;  // length, name, checksum
  for (size_t at = kSignature; size - at >= kFrame;) {
    const size_t length = BigEndian(data + at);
    if (length > size - at - kFrame) return;
    const auto sum = static_cast<uint32_t>(crc32_z(0, data + at + 4, kName + length));
    uint8_t* const to = data + at + 8 + length;
    for (int i = 0; i < 4; ++i) to[i] = static_cast<uint8_t>(sum >> (24 - 8 * i));
    at += kFrame + length;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const forge::fuzz::TimeLimit limit;
  (void)forge::DecodeImage(forge::Bytes(std::vector<uint8_t>(data, data + size)), "picture");
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 16 != 0 && size > 8 && std::memcmp(data, "\x89PNG\r\n\x1a\n", 8) == 0)
    RepairChunks(data, size);
  return size;
}
