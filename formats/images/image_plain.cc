// SPDX-License-Identifier: Apache-2.0
// Formats that store samples as they are: BMP, PNM, and TIFF without compression.
#include <array>
#include <charconv>

#include "formats/images/image_codecs.h"
#include "formats/untrusted/byte_reader.h"

namespace forge {
namespace {

// Where samples lie: row r begins at first + r * pitch.
struct Samples {
  uint64_t width = 0, height = 0;
  int channels = 3;  // of the picture; the file may hold one more
  int stored = 3;
  int64_t first = 0, pitch = 0;
  bool bgr = false;
};

absl::StatusOr<ir::HostValue> Copied(const Bytes& file, const Samples& s, std::string_view where) {
  const uint64_t row = s.width * static_cast<uint64_t>(s.stored);
  if (row > 0 && s.height > file.size() / row)  // before the picture is allocated
    return DataLoss("{}: a file of {} bytes holds no {} rows of {} pixels", where, file.size(),
                    s.height, s.width);
  FORGE_ASSIGN_OR_RETURN(ir::HostValue image, EmptyImage(s.height, s.width, s.channels, where));
  const std::span<uint8_t> to = image.mutable_bytes();
  for (uint64_t r = 0, at = 0; r < s.height; ++r) {
    const int64_t begin = s.first + static_cast<int64_t>(r) * s.pitch;
    if (begin < 0 || !Inside(static_cast<uint64_t>(begin), row, file.size()))
      return DataLoss("{}: the picture ends in row {} of {}", where, r, s.height);
    const uint8_t* from = file.data() + begin;
    for (uint64_t x = 0; x < s.width; ++x, from += s.stored)
      for (int c = 0; c < s.channels; ++c) to[at++] = from[s.bgr ? s.channels - 1 - c : c];
  }
  return image;
}

// An unsigned number of `size` bytes; 0 beyond the end.
uint64_t Unsigned(const Bytes& file, uint64_t at, int size, bool big_endian = false) {
  if (!Inside(at, static_cast<uint64_t>(size), file.size())) return 0;
  uint64_t v = 0;
  for (int i = 0; i < size; ++i)
    v = v << 8 | file.data()[at + static_cast<uint64_t>(big_endian ? i : size - 1 - i)];
  return v;
}

// The next number of a PNM header; nullopt where there is none.
std::optional<uint64_t> NextNumber(std::string_view all, size_t& at) {
  while (at < all.size() && (std::isspace(static_cast<uint8_t>(all[at])) != 0 || all[at] == '#')) {
    if (all[at] == '#')
      at = std::min(all.find('\n', at), all.size());
    else
      ++at;
  }
  uint64_t v = 0;
  const auto [end, error] = std::from_chars(all.data() + at, all.data() + all.size(), v);
  if (error != std::errc()) return std::nullopt;
  at = static_cast<size_t>(end - all.data());
  return v;
}

struct TiffFields {
  uint64_t width = 0, height = 0, bits = 8, compression = 1, photometric = 2, offset = 0;
  uint64_t samples = 1, rows = UINT64_MAX, planes = 1, strips = 0;
};

TiffFields FieldsOf(const Bytes& file, bool big_endian) {
  const auto read = [&](uint64_t at, int size) { return Unsigned(file, at, size, big_endian); };
  TiffFields f;
  const uint64_t directory = read(4, 4), count = read(directory, 2);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t at = directory + 2 + 12 * i;
    const uint64_t tag = read(at, 2), type = read(at + 2, 2), values = read(at + 4, 4);
    const int size = type == 3 ? 2 : 4;
    // What does not fit four bytes lies elsewhere.
    const uint64_t place = values * static_cast<uint64_t>(size) > 4 ? read(at + 8, 4) : at + 8;
    const uint64_t first = read(place, size);
    if (tag == 256) f.width = first;
    if (tag == 257) f.height = first;
    if (tag == 258) f.bits = first;
    if (tag == 259) f.compression = first;
    if (tag == 262) f.photometric = first;
    if (tag == 273) f.offset = first, f.strips = values;
    if (tag == 277) f.samples = first;
    if (tag == 278) f.rows = first;
    if (tag == 284) f.planes = first;
  }
  return f;
}

}  // namespace

absl::StatusOr<ir::HostValue> DecodeBmp(const Bytes& file, std::string_view where) {
  const auto height = static_cast<int32_t>(Unsigned(file, 22, 4));
  const uint64_t bits = Unsigned(file, 28, 2), compression = Unsigned(file, 30, 4);
  if ((bits != 24 && bits != 32) || (compression != 0 && compression != 3))
    return DataLoss("{}: BMP of {} bits with compression {} is not supported", where, bits,
                    compression);
  Samples s{.width = Unsigned(file, 18, 4),
            .height = static_cast<uint64_t>(std::abs(static_cast<int64_t>(height))),
            .stored = static_cast<int>(bits / 8),
            .first = static_cast<int64_t>(Unsigned(file, 10, 4)),
            .bgr = true};
  if (s.width > kMaxPixels) return DataLoss("{}: a width of {} pixels", where, s.width);
  s.pitch = static_cast<int64_t>((s.width * bits / 8 + 3) / 4 * 4);
  if (height > 0) {  // from the last row up
    s.first += (height - 1) * s.pitch;
    s.pitch = -s.pitch;
  }
  return Copied(file, s, where);
}

absl::StatusOr<ir::HostValue> DecodePnm(const Bytes& file, std::string_view where) {
  const std::string_view all(reinterpret_cast<const char*>(file.data()), file.size());
  size_t at = 2;
  const std::optional<uint64_t> width = NextNumber(all, at), height = NextNumber(all, at),
                                largest = NextNumber(all, at);
  if (!width || !height || largest != 255 || at >= all.size() || *width > kMaxPixels)
    return DataLoss("{}: a PNM picture whose header is damaged, or not of 8 bits", where);
  const int channels = all[1] == '6' ? 3 : 1;
  return Copied(file,
                {.width = *width,
                 .height = *height,
                 .channels = channels,
                 .stored = channels,
                 .first = static_cast<int64_t>(at + 1),
                 .pitch = static_cast<int64_t>(*width) * channels},
                where);
}

absl::StatusOr<ir::HostValue> DecodeTiff(const Bytes& file, std::string_view where) {
  const TiffFields f = FieldsOf(file, file.data()[0] == 'M');
  const bool grey = f.photometric == 1 && f.samples == 1;
  const bool color = f.photometric == 2 && (f.samples == 3 || f.samples == 4);
  const bool whole = f.strips == 1 || f.rows >= f.height;
  if (f.bits != 8 || f.compression != 1 || f.planes != 1 || !whole || (!grey && !color) ||
      f.width > kMaxPixels)
    return DataLoss(
        "{}: TIFF that is compressed, not of 8 bits, or of several strips is not "
        "supported",
        where);
  return Copied(file,
                {.width = f.width,
                 .height = f.height,
                 .channels = grey ? 1 : 3,
                 .stored = static_cast<int>(f.samples),
                 .first = static_cast<int64_t>(f.offset),
                 .pitch = static_cast<int64_t>(f.width * f.samples)},
                where);
}

}  // namespace forge
