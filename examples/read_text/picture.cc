// SPDX-License-Identifier: Apache-2.0
#include "picture.h"

#include <algorithm>
#include <cmath>

#include "formats/images/image.h"

absl::StatusOr<Picture> Picture::Read(const std::filesystem::path& path) {
  auto image = forge::ReadImage(path);
  if (!image.ok()) return image.status();
  const int64_t channels = image->dim(2);
  Picture p(image->dim(1), image->dim(0));
  const auto bytes = image->bytes();
  for (size_t i = 0; i < p.rgb_.size(); ++i) p.rgb_[i] = channels == 3 ? bytes[i] : bytes[i / 3];
  return p;
}

// Adds the picture's colour at `p`, between the centres of four pixels.
void Picture::AddAt(Point p, std::array<double, 3>& sum) const {
  const double x = std::clamp(p.x - 0.5, 0.0, static_cast<double>(width_ - 1));
  const double y = std::clamp(p.y - 0.5, 0.0, static_cast<double>(height_ - 1));
  const int64_t x0 = static_cast<int64_t>(x), x1 = std::min(x0 + 1, width_ - 1);
  const int64_t y0 = static_cast<int64_t>(y), y1 = std::min(y0 + 1, height_ - 1);
  const double fx = x - static_cast<double>(x0), fy = y - static_cast<double>(y0);
  const uint8_t* above = rgb_.data() + y0 * width_ * 3;
  const uint8_t* below = rgb_.data() + y1 * width_ * 3;
  for (int64_t c = 0; c < 3; ++c)
    sum[static_cast<size_t>(c)] +=
        (1 - fy) * ((1 - fx) * above[x0 * 3 + c] + fx * above[x1 * 3 + c]) +
        fy * ((1 - fx) * below[x0 * 3 + c] + fx * below[x1 * 3 + c]);
}

Picture Picture::Cut(const Quad& corners, int64_t width, int64_t height) const {
  Picture out(width, height);
  const Point across = 1.0 / static_cast<double>(width) * (corners[1] - corners[0]);
  const Point down = 1.0 / static_cast<double>(height) * (corners[3] - corners[0]);
  const auto points = [](Point step) {
    return std::clamp(static_cast<int>(std::ceil(std::hypot(step.x, step.y) - 1e-6)), 1, 8);
  };
  const int nx = points(across), ny = points(down);
  for (int64_t i = 0; i < width * height; ++i) {
    std::array<double, 3> sum = {};
    for (int k = 0; k < nx * ny; ++k) {
      const double x = static_cast<double>(i % width) + (k % nx + 0.5) / nx;
      const double y = static_cast<double>(i / width) + (k / nx + 0.5) / ny;
      AddAt(corners[0] + x * across + y * down, sum);
    }
    for (size_t c = 0; c < 3; ++c)
      out.rgb_[static_cast<size_t>(i) * 3 + c] =
          static_cast<uint8_t>(std::lround(sum[c] / (nx * ny)));
  }
  return out;
}

forge::ir::HostValue Picture::AsInput(int64_t padded_width) const {
  const int64_t shape[] = {1, 3, height_, padded_width};
  forge::ir::HostValue input = *forge::ir::HostValue::Zeros(forge::DType::kF32, shape);
  float* to = reinterpret_cast<float*>(input.mutable_bytes().data());
  for (int64_t c = 0; c < 3; ++c)
    for (int64_t y = 0; y < height_; ++y)
      for (int64_t x = 0; x < width_; ++x)
        to[(c * height_ + y) * padded_width + x] =
            static_cast<float>(rgb_[static_cast<size_t>((y * width_ + x) * 3 + 2 - c)]) / 127.5f -
            1.0f;
  return input;
}
