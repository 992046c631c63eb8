// SPDX-License-Identifier: Apache-2.0
#include "tools/train/curve.h"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/platform.h"

namespace forge::tools {
namespace {

constexpr size_t kMostPoints = 1024;

struct Colour {
  uint8_t red, green, blue;
};
constexpr Colour kInk{0x30, 0x30, 0x30}, kGrid{0xe0, 0xe0, 0xe0}, kLine{0x1f, 0x77, 0xb4},
    kDot{0xd6, 0x27, 0x28};

// Rows of three pixels from the top, an octal digit each.
struct Glyph {
  char letter;
  uint16_t rows;
};
constexpr Glyph kGlyphs[] = {
    {'0', 075557}, {'1', 026227}, {'2', 071747}, {'3', 071717}, {'4', 055711}, {'5', 074717},
    {'6', 074757}, {'7', 071111}, {'8', 075757}, {'9', 075717}, {'.', 000002}, {'-', 000700},
    {'+', 002720}, {'a', 003553}, {'d', 011757}, {'e', 007647}, {'i', 020222}, {'l', 044446},
    {'n', 006555}, {'o', 007557}, {'p', 007574}, {'s', 007637}, {'t', 027223}, {'v', 005552},
};
constexpr int kPixel = 2, kLetter = 4 * kPixel;  // of a glyph's pixel; of a letter with its gap

class Canvas {
 public:
  static constexpr int kWidth = 800, kHeight = 480;

  void Dot(int x, int y, Colour c, int size = 1) {
    for (int j = y; j < y + size; ++j)
      for (int i = x; i < x + size; ++i)
        if (i >= 0 && i < kWidth && j >= 0 && j < kHeight)
          pixels_[static_cast<size_t>(j) * kWidth + static_cast<size_t>(i)] = c;
  }
  void Line(double x0, double y0, double x1, double y1, Colour c, int size = 1) {
    const int n = std::max(1, static_cast<int>(std::max(std::abs(x1 - x0), std::abs(y1 - y0))));
    for (int i = 0; i <= n; ++i) {
      const double t = static_cast<double>(i) / n;
      Dot(static_cast<int>(std::lround(x0 + t * (x1 - x0))),
          static_cast<int>(std::lround(y0 + t * (y1 - y0))), c, size);
    }
  }
  void Text(int x, int y, std::string_view text, Colour c) {
    for (const char letter : text) {
      const auto* const glyph = std::ranges::find(kGlyphs, letter, &Glyph::letter);
      for (int bit = 0; glyph != std::end(kGlyphs) && bit < 15; ++bit)
        if ((glyph->rows >> (14 - bit) & 1) != 0)
          Dot(x + bit % 3 * kPixel, y + bit / 3 * kPixel, c, kPixel);
      x += kLetter;
    }
  }
  absl::Status Write(const std::filesystem::path& path) const {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = kWidth;
    image.height = kHeight;
    image.format = PNG_FORMAT_RGB;
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
    std::vector<uint8_t> file(size);
    if (png_image_write_to_memory(&image, file.data(), &size, 0, pixels_.data(), 0, nullptr) == 0)
      return Internal("{}: {}", path.string(), image.message);
    return WriteFile(path, std::span(file).first(size));
  }

 private:
  std::vector<Colour> pixels_ = std::vector<Colour>(kWidth * kHeight, Colour{255, 255, 255});
};

// A range of numbers along some pixels, and round numbers in it.
struct Axis {
  double low, high;
  int first, last;  // pixels
  double At(double v) const { return first + (v - low) / (high - low) * (last - first); }
  std::vector<double> Ticks() const {
    const double rough = (high - low) / 5, power = std::pow(10, std::floor(std::log10(rough)));
    const double step = power * (rough < 2 * power ? 2 : rough < 5 * power ? 5 : 10);
    std::vector<double> out;
    for (double v = std::ceil(low / step) * step; v <= high; v += step)
      out.push_back(std::abs(v) < step / 2 ? 0 : v);
    return out;
  }
};

// An axis that has room for equal numbers, too.
Axis AxisOf(double low, double high, int first, int last) {
  const double room = high > low ? 0 : std::max(std::abs(low) / 2, 0.5);
  return {low - room, high + room, first, last};
}

void DrawAxes(Canvas& canvas, const Axis& x, const Axis& y) {
  for (const double v : y.Ticks()) {
    canvas.Line(x.first, y.At(v), x.last, y.At(v), kGrid);
    const std::string text = fmt::format("{:.4g}", v);
    canvas.Text(x.first - 8 - kLetter * static_cast<int>(text.size()),
                static_cast<int>(y.At(v)) - 5, text, kInk);
  }
  for (const double v : x.Ticks()) {
    canvas.Line(x.At(v), y.first, x.At(v), y.last, kGrid);
    const std::string text = fmt::format("{:.6g}", v);
    canvas.Text(static_cast<int>(x.At(v)) - kLetter * static_cast<int>(text.size()) / 2,
                y.first + 8, text, kInk);
  }
  canvas.Line(x.first, y.first, x.last, y.first, kInk);
  canvas.Line(x.first, y.first, x.first, y.last, kInk);
  canvas.Text(x.first, y.last - 20, "loss", kLine);
  canvas.Text((x.first + x.last) / 2 - 2 * kLetter, y.first + 28, "step", kInk);
}

}  // namespace

void LossCurve::Add(int64_t step, double loss) {
  if (points_.size() == kMostPoints && last_has_ == each_has_) {
    for (size_t i = 0; i < kMostPoints / 2; ++i) {
      const Point &a = points_[2 * i], &b = points_[2 * i + 1];
      points_[i] = {(a.step + b.step) / 2, (a.loss + b.loss) / 2};
    }
    points_.resize(kMostPoints / 2);
    last_has_ = each_has_ *= 2;
  }
  if (points_.empty() || last_has_ == each_has_) {
    points_.emplace_back();
    last_has_ = 0;
  }
  Point& last = points_.back();
  ++last_has_;
  last.step += (static_cast<double>(step) - last.step) / static_cast<double>(last_has_);
  last.loss += (loss - last.loss) / static_cast<double>(last_has_);
}

std::string LossCurve::Text(size_t columns) const {
  if (points_.empty()) return {};
  static constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const size_t n = std::min(columns, points_.size());
  std::vector<double> means(n);
  for (size_t i = 0; i < n; ++i) {
    const size_t begin = i * points_.size() / n, end = (i + 1) * points_.size() / n;
    for (size_t k = begin; k < end; ++k)
      means[i] += points_[k].loss / static_cast<double>(end - begin);
  }
  const auto [low, high] = std::ranges::minmax(means);
  std::string text = fmt::format("{:.4f} ", means.front());
  for (const double m : means)
    text +=
        kBlocks[high > low ? static_cast<size_t>(std::lround((m - low) / (high - low) * 7)) : 0];
  return text + fmt::format(" {:.4f}", means.back());
}

absl::Status LossCurve::WritePng(const std::filesystem::path& path) const {
  if (points_.empty()) return absl::OkStatus();
  std::vector<Point> all = points_;
  all.insert(all.end(), validation_.begin(), validation_.end());
  const auto [least, most] = std::ranges::minmax(all, {}, &Point::loss);
  Canvas canvas;
  const Axis x = AxisOf(points_.front().step, std::ranges::max(all, {}, &Point::step).step, 80,
                        Canvas::kWidth - 20);
  const Axis y = AxisOf(std::min(0.0, least.loss), most.loss, Canvas::kHeight - 60, 30);
  DrawAxes(canvas, x, y);
  for (size_t i = 0; i < points_.size(); ++i) {
    const Point &from = points_[i > 0 ? i - 1 : 0], &to = points_[i];
    canvas.Line(x.At(from.step), y.At(from.loss), x.At(to.step), y.At(to.loss), kLine, 2);
  }
  for (const Point& p : validation_)
    canvas.Dot(static_cast<int>(x.At(p.step)) - 3, static_cast<int>(y.At(p.loss)) - 3, kDot, 7);
  if (!validation_.empty()) canvas.Text(x.first + 6 * kLetter, y.last - 20, "validation", kDot);
  return canvas.Write(path);
}

}  // namespace forge::tools
