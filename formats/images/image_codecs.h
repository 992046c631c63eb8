// SPDX-License-Identifier: Apache-2.0
// The codecs behind DecodeImage. The libraries for PNG and JPEG report errors by longjmp, so each
// decoder is an object whose methods call the library between setjmp and return and own nothing in
// between.
#pragma once
#include <string_view>

#include "ir/type/host_value.h"

namespace forge {

inline constexpr uint64_t kMaxPixels = uint64_t{1} << 28;

// Allocates an image of zeros to decode into.
//   errors: DataLoss (too many pixels, no pixels)
absl::StatusOr<ir::HostValue> EmptyImage(uint64_t height, uint64_t width, int channels,
                                         std::string_view where);

// Decode a picture of one format; see DecodeImage.
absl::StatusOr<ir::HostValue> DecodePng(const Bytes& file, std::string_view where);
absl::StatusOr<ir::HostValue> DecodeJpeg(const Bytes& file, std::string_view where);
// Of these, files without compression alone.
absl::StatusOr<ir::HostValue> DecodeBmp(const Bytes& file, std::string_view where);
absl::StatusOr<ir::HostValue> DecodePnm(const Bytes& file, std::string_view where);
absl::StatusOr<ir::HostValue> DecodeTiff(const Bytes& file, std::string_view where);

}  // namespace forge
