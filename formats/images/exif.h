// SPDX-License-Identifier: Apache-2.0
// EXIF orientation of pictures.
#pragma once
#include <span>

#include "ir/type/host_value.h"

namespace forge {

// Returns the orientation, 1 to 8, that the APP1 segment of a JPEG gives; 1 (upright) where it
// gives none or is damaged.
//   source: CIPA DC-008 (Exif 2.32), 4.6.4, tag 0x0112
int ExifOrientation(std::span<const uint8_t> segment);

// Rotates and mirrors a picture so that it is upright.
//   image: u8 [height, width, channels]     orientation: 1 to 8
ir::HostValue Upright(ir::HostValue image, int orientation);

}  // namespace forge
