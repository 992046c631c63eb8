// SPDX-License-Identifier: Apache-2.0
#include "formats/arrays/idx.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/platform.h"
#include "formats/arrays/gzip.h"
#include "formats/untrusted/byte_reader.h"

namespace forge {
namespace {

constexpr uint64_t kMaxIdxBytes = uint64_t{4} << 30;
constexpr uint64_t kMaxIdxAxes = 8, kIdxHeader = 4;  // bytes before the extents

struct ElementType {
  uint8_t code;
  DType dtype;
};
constexpr std::array<ElementType, 6> kElementTypes = {{{0x08, DType::kU8},
                                                       {0x09, DType::kI8},
                                                       {0x0B, DType::kI16},
                                                       {0x0C, DType::kI32},
                                                       {0x0D, DType::kF32},
                                                       {0x0E, DType::kF64}}};

uint32_t BigEndian(const uint8_t* p) {
  return uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 | uint32_t{p[3]};
}

// Returns the elements in the byte order of the host.
Bytes Swapped(const Bytes& content, uint64_t width) {
  std::vector<uint8_t> out(content.span().begin(), content.span().end());
  for (uint64_t at = 0; at + width <= out.size(); at += width)
    std::reverse(out.begin() + static_cast<int64_t>(at),
                 out.begin() + static_cast<int64_t>(at + width));
  return Bytes(std::move(out));
}

}  // namespace

absl::StatusOr<ir::HostValue> ParseIdx(const Bytes& file, std::string_view where) {
  if (IsGzip(file)) {
    FORGE_ASSIGN_OR_RETURN(const Bytes content, Gunzip(file, where, kMaxIdxBytes));
    if (IsGzip(content)) return DataLoss("{}: gzipped twice", where);
    return ParseIdx(content, where);
  }
  const uint8_t* p = file.data();
  if (file.size() < kIdxHeader || p[0] != 0 || p[1] != 0)
    return DataLoss("{}: not an IDX file: it does not begin with two zero bytes", where);
  const auto* type = std::ranges::find(kElementTypes, p[2], &ElementType::code);
  if (type == kElementTypes.end())
    return DataLoss("{}: element type {:#04x} at byte 2 is not one of the IDX format", where, p[2]);
  const uint64_t axes = p[3];
  if (axes == 0 || axes > kMaxIdxAxes)
    return DataLoss("{}: {} axes at byte 3; 1 to {} are supported", where, axes, kMaxIdxAxes);
  const uint64_t begin = kIdxHeader + 4 * axes;
  if (file.size() < begin)
    return DataLoss("{}: truncated: the extents end at byte {}, the file at {}", where, begin,
                    file.size());
  const auto width = static_cast<uint64_t>(BitWidth(type->dtype)) / 8;
  std::vector<int64_t> shape;
  uint64_t bytes = width;
  for (uint64_t i = 0; i < axes; ++i) {
    const uint64_t extent = BigEndian(p + kIdxHeader + 4 * i);
    shape.push_back(static_cast<int64_t>(extent));
    bytes = bytes > kMaxIdxBytes ? bytes : bytes * extent;  // below 2^64: 2^32 * 2^32
    if (bytes > kMaxIdxBytes)
      return DataLoss("{}: declares more than {} bytes", where, kMaxIdxBytes);
  }
  if (file.size() - begin != bytes)
    return DataLoss("{}: its extents need {} bytes, {} follow them", where, bytes,
                    file.size() - begin);
  const Bytes content = file.Part(begin, bytes);
  return ir::HostValue::Of(type->dtype, shape, width == 1 ? content : Swapped(content, width));
}

absl::StatusOr<ir::HostValue> ReadIdx(const std::filesystem::path& path) {
  FORGE_ASSIGN_OR_RETURN(const Bytes file, MapFile(path));
  return ParseIdx(file, path.string());
}

}  // namespace forge
