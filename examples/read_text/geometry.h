// SPDX-License-Identifier: Apache-2.0
// Points, and the smallest rectangle around them.
#pragma once
#include <array>
#include <vector>

struct Point {
  double x = 0, y = 0;  // pixels; y goes down
};

inline Point operator+(Point a, Point b) { return {a.x + b.x, a.y + b.y}; }
inline Point operator-(Point a, Point b) { return {a.x - b.x, a.y - b.y}; }
inline Point operator*(double s, Point a) { return {s * a.x, s * a.y}; }
inline double Dot(Point a, Point b) { return a.x * b.x + a.y * b.y; }
inline double Cross(Point a, Point b) { return a.x * b.y - a.y * b.x; }

// A parallelogram: top left, top right, bottom right, bottom left of what is in it.
using Quad = std::array<Point, 4>;

struct Rectangle {
  Point centre;
  Point right, down;                       // unit vectors, the nearest to the axes of the picture
  double half_width = 0, half_height = 0;  // along `right` and `down`

  Quad corners() const;
};

// The corners of the convex hull, each once.
std::vector<Point> ConvexHull(std::vector<Point> points);

// The rectangle of least area, at any angle, around one or more points.
Rectangle SmallestRectangle(const std::vector<Point>& points);
