// SPDX-License-Identifier: Apache-2.0
// Conversion of a decoded picture to the input of a model, as --preprocess or the "preprocess"
// metadata of a model specifies.
#pragma once
#include <string_view>
#include <vector>

#include "ir/type/host_value.h"

namespace forge {

// A parsed --preprocess specification.
struct Preprocess {
  enum class Layout : uint8_t { kNchw, kNhwc };
  enum class Color : uint8_t { kRgb, kBgr, kGray };
  int64_t height = 0, width = 0;  // 0: the size of the picture
  // One value for all channels, or one for each channel of the result; relative to samples scaled
  // to 0..1.
  std::vector<double> mean = {0}, std = {1};
  Layout layout = Layout::kNchw;
  Color color = Color::kRgb;
};

// Parses "resize=HxW,mean=0.5,0.5,0.5,std=0.25,layout=nchw,color=bgr". Every key is optional; a
// list extends to the next key.
//   errors: InvalidArgument naming the key
absl::StatusOr<Preprocess> ParsePreprocess(std::string_view spec);

// Converts a picture to a tensor, in f32: colour conversion, bilinear resize (half-pixel centres,
// no antialiasing; exact where the size does not change), then (value / 255 - mean) / std. Grey is
// (299 R + 587 G + 114 B) / 1000, rounded.
//   image: u8 [height, width, 1 or 3]      result: f32 [1, c, h, w] or [1, h, w, c]
//   errors: InvalidArgument (means for another number of channels, not a picture)
absl::StatusOr<ir::HostValue> ApplyPreprocess(const Preprocess& p, const ir::HostValue& image);

}  // namespace forge
