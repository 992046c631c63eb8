// SPDX-License-Identifier: Apache-2.0
// How a camera was held.
#pragma once
#include <span>

#include "ir/type/host_value.h"

namespace forge {

// The orientation, 1 to 8, that the content of a JPEG's APP1 segment gives; 1, upright, where it
// gives none or is damaged.  source: CIPA DC-008 (Exif 2.32), 4.6.4, tag 0x0112
int ExifOrientation(std::span<const uint8_t> segment);

// The picture turned and mirrored so that it is upright.
//   image: u8 [height, width, channels]
ir::HostValue Upright(ir::HostValue image, int orientation);

}  // namespace forge
