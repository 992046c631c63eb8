// SPDX-License-Identifier: Apache-2.0
#include "formats/images/exif.h"

#include <algorithm>
#include <cstring>

#include "formats/untrusted/byte_reader.h"

namespace forge {
namespace {

// A TIFF structure: numbers in the byte order that its first two bytes name; 0 outside it.
class Tiff {
 public:
  explicit Tiff(std::span<const uint8_t> bytes)
      : bytes_(bytes), big_(!bytes.empty() && bytes[0] == 'M') {}

  uint64_t At(uint64_t offset, uint64_t size) const {
    if (!Inside(offset, size, bytes_.size())) return 0;
    uint64_t value = 0;
    for (uint64_t i = 0; i < size; ++i)
      value = value << 8 | bytes_[offset + (big_ ? i : size - 1 - i)];
    return value;
  }

 private:
  std::span<const uint8_t> bytes_;
  bool big_ = false;
};

}  // namespace

int ExifOrientation(std::span<const uint8_t> segment) {
  constexpr uint64_t kEntrySize = 12, kTag = 0x0112, kShort = 3, kMagic = 42;
  static constexpr uint8_t kName[] = {'E', 'x', 'i', 'f', 0, 0};
  if (segment.size() < sizeof(kName) || std::memcmp(segment.data(), kName, sizeof(kName)) != 0)
    return 1;
  const Tiff tiff(segment.subspan(sizeof(kName)));
  if (tiff.At(2, 2) != kMagic) return 1;
  const uint64_t directory = tiff.At(4, 4), entries = tiff.At(directory, 2);
  for (uint64_t i = 0; i < entries; ++i) {
    const uint64_t at = directory + 2 + i * kEntrySize;
    if (tiff.At(at, 2) != kTag || tiff.At(at + 2, 2) != kShort) continue;
    const uint64_t value = tiff.At(at + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

ir::HostValue Upright(ir::HostValue image, int orientation) {
  if (orientation <= 1 || orientation > 8) return image;
  const bool turned = orientation >= 5;
  const bool from_below =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool from_right =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const int64_t height = image.dim(0), width = image.dim(1), channels = image.dim(2);
  const int64_t rows = turned ? width : height, columns = turned ? height : width;
  std::vector<uint8_t> out(image.bytes().size());
  const uint8_t* in = image.bytes().data();
  for (int64_t y = 0; y < rows; ++y) {
    for (int64_t x = 0; x < columns; ++x) {
      const int64_t row = turned ? x : y, column = turned ? y : x;
      const int64_t from = (from_below ? height - 1 - row : row) * width +
                           (from_right ? width - 1 - column : column);
      std::copy_n(in + from * channels, channels, out.data() + (y * columns + x) * channels);
    }
  }
  const int64_t shape[] = {rows, columns, channels};
  auto upright = ir::HostValue::Of(DType::kU8, shape, Bytes(std::move(out)));
  FORGE_CHECK(upright.ok());
  return *std::move(upright);
}

}  // namespace forge
