// SPDX-License-Identifier: Apache-2.0
// Pictures, cut and scaled, as inputs of PP-OCR's networks.
#pragma once
#include <filesystem>

#include "geometry.h"
#include "ir/type/host_value.h"

class Picture {
 public:
  // Reads a PNG or JPEG file.  errors: NotFound, DataLoss
  static absl::StatusOr<Picture> Read(const std::filesystem::path& path);

  int64_t width() const { return width_; }
  int64_t height() const { return height_; }

  // What the parallelogram `corners` shows, scaled to width x height; beyond the edges the nearest
  // pixel is seen. Each pixel is the mean of as many points as keep fine strokes from being missed.
  Picture Cut(const Quad& corners, int64_t width, int64_t height) const;

  // f32 [1, 3, height, padded_width]: blue, green, red in -1 .. 1, zeros right of the picture.
  //   padded_width: at least width()
  forge::ir::HostValue AsInput(int64_t padded_width) const;

 private:
  Picture(int64_t width, int64_t height)
      : width_(width), height_(height), rgb_(static_cast<size_t>(width * height) * 3) {}
  void AddAt(Point p, std::array<double, 3>& sum) const;

  int64_t width_, height_;
  std::vector<uint8_t> rgb_;
};
