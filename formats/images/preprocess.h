// SPDX-License-Identifier: Apache-2.0
// From a decoded picture to a model's input, as --preprocess and a model's "preprocess" metadata
// say.
#pragma once
#include <string_view>
#include <vector>

#include "ir/type/host_value.h"

namespace forge {

struct Preprocess {
  enum class Layout : uint8_t { kNchw, kNhwc };
  enum class Color : uint8_t { kRgb, kBgr, kGray };
  int64_t height = 0, width = 0;  // 0: the picture's own
  // One value for all channels or one for each, in the order of the result's channels, in units of
  // the scaled sample.
  std::vector<double> mean = {0}, std = {1};
  Layout layout = Layout::kNchw;
  Color color = Color::kRgb;
};

// Parses "resize=HxW,mean=0.5,0.5,0.5,std=0.25,layout=nchw,color=bgr"; every key may be left out,
// and a list goes on until the next key.
//   errors: InvalidArgument naming the part
absl::StatusOr<Preprocess> ParsePreprocess(std::string_view spec);

// Applies it: colour conversion, bilinear resize (half-pixel centres, no antialiasing; exact where
// the size stays), then (value / 255 - mean) / std, all in f32. Grey is (299 R + 587 G + 114 B) /
// 1000, rounded.
//   image: u8 [height, width, 1 or 3]      result: f32 [1, c, h, w] or [1, h, w, c]
//   errors: InvalidArgument (means for another number of channels, no picture)
absl::StatusOr<ir::HostValue> ApplyPreprocess(const Preprocess& p, const ir::HostValue& image);

}  // namespace forge
