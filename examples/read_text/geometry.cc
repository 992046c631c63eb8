// SPDX-License-Identifier: Apache-2.0
#include "geometry.h"

#include <algorithm>
#include <cmath>
#include <limits>

Quad Rectangle::corners() const {
  const Point w = half_width * right, h = half_height * down;
  return {centre - w - h, centre + w - h, centre + w + h, centre - w + h};
}

// Andrew's monotone chain: the lower hull from left to right, then the upper one back.
std::vector<Point> ConvexHull(std::vector<Point> points) {
  std::sort(points.begin(), points.end(),
            [](Point a, Point b) { return a.x < b.x || (a.x == b.x && a.y < b.y); });
  std::vector<Point> hull;
  for (int pass = 0; pass < 2; ++pass) {
    const size_t first = hull.size();
    for (const Point p : points) {
      while (hull.size() >= first + 2 &&
             Cross(hull.back() - hull[hull.size() - 2], p - hull.back()) <= 0)
        hull.pop_back();
      hull.push_back(p);
    }
    hull.pop_back();  // the other chain begins with it
    std::reverse(points.begin(), points.end());
  }
  if (hull.empty() && !points.empty()) hull.push_back(points.front());
  return hull;
}

// The rectangle around `hull` with a side along the unit vector `along`.
static Rectangle Around(const std::vector<Point>& hull, Point along) {
  if (std::abs(along.y) > std::abs(along.x)) along = {along.y, -along.x};
  if (along.x < 0) along = -1 * along;
  const Point down = {-along.y, along.x};
  double left = std::numeric_limits<double>::max(), right = -left, top = left, bottom = -left;
  for (const Point p : hull) {
    left = std::min(left, Dot(p, along)), right = std::max(right, Dot(p, along));
    top = std::min(top, Dot(p, down)), bottom = std::max(bottom, Dot(p, down));
  }
  return {.centre = (left + right) / 2 * along + (top + bottom) / 2 * down,
          .right = along,
          .down = down,
          .half_width = (right - left) / 2,
          .half_height = (bottom - top) / 2};
}

// One side of the smallest rectangle lies on a side of the hull.
Rectangle SmallestRectangle(const std::vector<Point>& points) {
  const std::vector<Point> hull = ConvexHull(points);
  Rectangle best = Around(hull, {1, 0});
  for (size_t i = 0; i < hull.size(); ++i) {
    const Point side = hull[(i + 1) % hull.size()] - hull[i];
    const double length = std::hypot(side.x, side.y);
    if (length == 0) continue;
    const Rectangle r = Around(hull, 1 / length * side);
    if (r.half_width * r.half_height < best.half_width * best.half_height) best = r;
  }
  return best;
}
