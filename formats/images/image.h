// SPDX-License-Identifier: Apache-2.0
// Pictures as tensors.
#pragma once
#include <filesystem>
#include <string_view>

#include "ir/type/host_value.h"

namespace forge {

// Decodes a PNG or JPEG picture, or a BMP, binary PNM or TIFF without compression, identified by
// its content, into u8 [height, width, channels] with 1 (grey) or 3 (red, green, blue) channels.
// Palettes are expanded, alpha is dropped, 16-bit samples are reduced to their high byte, CMYK is
// converted to RGB, the EXIF orientation of a JPEG is applied; colour profiles are ignored. The
// result equals OpenCV's imread, and Pillow's convert("RGB") after ImageOps.exif_transpose.
//   where: the name of the file in messages      limits: 2^28 pixels
//   errors: DataLoss (no such format, damaged, truncated)
absl::StatusOr<ir::HostValue> DecodeImage(const Bytes& file, std::string_view where);

// Reads and decodes a picture file.  errors: NotFound, DataLoss
absl::StatusOr<ir::HostValue> ReadImage(const std::filesystem::path& path);

}  // namespace forge
