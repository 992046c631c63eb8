// SPDX-License-Identifier: Apache-2.0
// The op that decodes pictures. It stands here, above the layer of the other ops, since the codecs
// do.
#pragma once
#include "ir/ops/host/host_step.h"

namespace forge::ir {

enum class PixelOrder : uint8_t { kRgb, kBgr, kGray };

struct DecodePicture {
  PixelOrder order = PixelOrder::kRgb;

  static constexpr OpInfo kInfo{
      .name = "decode_picture",
      .formula = "the picture that the bytes x encode, u8[height, width, channels]",
      .inputs = "x: value",
      .outputs = "y: value",
      .source = "ONNX ImageDecoder-20",
      .host = true};
  static constexpr Field kFields[] = {
      FieldOf<&DecodePicture::order>("order", "Of the channels.", "rgb|bgr|gray")};
  FORGE_HOST_STEP(1)
};
const OpDef& DefOf(const DecodePicture*);

}  // namespace forge::ir
