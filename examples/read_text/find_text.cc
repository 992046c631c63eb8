// SPDX-License-Identifier: Apache-2.0
#include "find_text.h"

#include <algorithm>
#include <cmath>

namespace {

constexpr double kInText = 0.3;     // least probability of a pixel
constexpr double kTextScore = 0.5;  // least mean probability of a line
// The network marks the core of a line: its border moves out by this much of area / perimeter.
constexpr double kUnclip = 1.6;
constexpr double kThinnest = 3;    // pixels of the map; less is no line
constexpr int64_t kMultiple = 32;  // of the sides of the network's input

// A map of probabilities, one for each pixel of the network's input.
struct Map {
  int64_t width, height;
  std::span<const float> p;
};

// A connected part of the map.
struct Part {
  std::vector<Point> outline;  // the corners of the ends of each of its rows
  double sum = 0;
  int64_t pixels = 0;
};

// Takes the part at `start` out of `unseen`, by its pixels and their eight neighbours.
Part TakePart(const Map& map, int64_t start, std::vector<bool>& unseen) {
  Part part;
  std::vector<int64_t> open = {start};
  unseen[static_cast<size_t>(start)] = false;
  while (!open.empty()) {
    const int64_t at = open.back(), x = at % map.width, y = at / map.width;
    open.pop_back();
    part.sum += static_cast<double>(map.p[static_cast<size_t>(at)]);
    ++part.pixels;
    bool inner = x > 0 && y > 0 && x + 1 < map.width && y + 1 < map.height;
    for (int64_t k = 0; k < 9; ++k) {
      const int64_t nx = x + k % 3 - 1, ny = y + k / 3 - 1;
      if (nx < 0 || ny < 0 || nx >= map.width || ny >= map.height) continue;
      const size_t next = static_cast<size_t>(ny * map.width + nx);
      inner = inner && static_cast<double>(map.p[next]) > kInText;
      if (unseen[next]) open.push_back(static_cast<int64_t>(next));
      unseen[next] = false;
    }
    if (inner) continue;
    const double left = static_cast<double>(x), top = static_cast<double>(y);
    for (const Point corner : {Point{0, 0}, Point{1, 0}, Point{1, 1}, Point{0, 1}})
      part.outline.push_back(Point{left, top} + corner);
  }
  return part;
}

// The rectangle of a line whose core is `core`.
Rectangle Unclip(Rectangle core) {
  const double w = 2 * core.half_width, h = 2 * core.half_height;
  const double distance = kUnclip * w * h / (2 * (w + h));
  core.half_width += distance;
  core.half_height += distance;
  return core;
}

// The corners in the picture. A line much taller than wide runs downwards, or upwards, and then it
// is upside down.
Quad InPicture(const Rectangle& r, double scale_x, double scale_y) {
  Quad q = r.corners();
  for (Point& p : q) p = {p.x * scale_x, p.y * scale_y};
  const Point across = q[1] - q[0], down = q[3] - q[0];
  if (std::hypot(down.x, down.y) >= 1.5 * std::hypot(across.x, across.y))
    std::rotate(q.begin(), q.begin() + 1, q.end());
  return q;
}

double Middle(const TextBox& box) { return (box.corners[0].y + box.corners[2].y) / 2; }

// Lines are level when the middle of one is less than half its height from that of the other.
void SortForReading(std::vector<TextBox>& boxes) {
  std::sort(boxes.begin(), boxes.end(),
            [](const TextBox& a, const TextBox& b) { return Middle(a) < Middle(b); });
  for (auto row = boxes.begin(); row != boxes.end();) {
    const Point side = row->corners[3] - row->corners[0];
    const double reach = Middle(*row) + std::hypot(side.x, side.y) / 2;
    const auto end =
        std::find_if(row, boxes.end(), [&](const TextBox& b) { return Middle(b) >= reach; });
    const auto next = std::max(end, row + 1);
    std::sort(row, next,
              [](const TextBox& a, const TextBox& b) { return a.corners[0].x < b.corners[0].x; });
    row = next;
  }
}

int64_t SideFor(int64_t pixels, double scale) {
  const double side = static_cast<double>(pixels) * scale / kMultiple;
  return std::max<int64_t>(std::lround(side), 1) * kMultiple;
}

}  // namespace

absl::StatusOr<std::vector<TextBox>> FindText(Network& detector, const Picture& picture,
                                              int64_t longest_side) {
  const double full_width = static_cast<double>(picture.width());
  const double full_height = static_cast<double>(picture.height());
  const double scale =
      std::min(1.0, static_cast<double>(longest_side) / std::max(full_width, full_height));
  const int64_t width = SideFor(picture.width(), scale), height = SideFor(picture.height(), scale);
  const Quad whole = {Point{0, 0}, {full_width, 0}, {full_width, full_height}, {0, full_height}};
  auto scores = detector.Run(picture.Cut(whole, width, height).AsInput(width), 4);
  if (!scores.ok()) return scores.status();
  if (scores->elements() != width * height)
    return absl::InvalidArgumentError("the detector makes no map of its input");

  const Map map{.width = width, .height = height, .p = Floats(*scores)};
  std::vector<bool> unseen(map.p.size());
  for (size_t i = 0; i < map.p.size(); ++i) unseen[i] = static_cast<double>(map.p[i]) > kInText;
  std::vector<TextBox> boxes;
  for (size_t i = 0; i < unseen.size(); ++i) {
    if (!unseen[i]) continue;
    const Part part = TakePart(map, static_cast<int64_t>(i), unseen);
    const Rectangle core = SmallestRectangle(part.outline);
    const double score = part.sum / static_cast<double>(part.pixels);
    if (score < kTextScore || 2 * std::min(core.half_width, core.half_height) < kThinnest) continue;
    boxes.push_back({InPicture(Unclip(core), full_width / static_cast<double>(width),
                               full_height / static_cast<double>(height)),
                     score});
  }
  SortForReading(boxes);
  return boxes;
}
