// SPDX-License-Identifier: Apache-2.0
// Pictures as tensors.
#pragma once
#include <filesystem>
#include <string_view>

#include "ir/host_value.h"

namespace forge {

// Decodes a PNG or JPEG picture, told apart by content, into u8 [height, width, channels] with 1
// (grey) or 3 (red, green, blue) channels. As Pillow and OpenCV do: palettes are expanded, alpha is
// dropped, 16-bit samples keep their high byte, colour profiles and EXIF orientation are ignored.
//   where: names the file in messages      limits: 2^28 pixels
//   errors: DataLoss (neither format, damaged, cut off, CMYK)
absl::StatusOr<ir::HostValue> DecodeImage(const Bytes& file, std::string_view where);

// Reads and decodes a picture file.  errors: NotFound, DataLoss
absl::StatusOr<ir::HostValue> ReadImage(const std::filesystem::path& path);

}  // namespace forge
