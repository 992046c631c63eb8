// SPDX-License-Identifier: Apache-2.0
// Where to draw the nodes and edges of a graph: in layers, every edge downwards.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace forge::tools {

struct LayoutPoint {
  double x = 0, y = 0;
};
struct LayoutBox {
  double width = 0, height = 0;
};
struct LayoutEdge {
  uint32_t from, to;  // from < to: nodes come in an order in which every edge goes forward
};
struct Layout {
  std::vector<LayoutPoint> nodes;                // upper left corners
  std::vector<std::vector<LayoutPoint>> routes;  // by edge, from bottom to top; empty: see below
  LayoutBox size;
};

// Lays a graph out in time near-linear in nodes and edges. An edge over more than 24 layers would
// cross the whole picture: it gets no route, and is drawn as two stubs that name each other.
//   boxes: sizes of the nodes, pixels     FORGE_CHECKs that edges go forward
//   source: Sugiyama, Tagawa, Toda, "Methods for visual understanding of hierarchical system
//   structures" (layers, barycentres); x by isotonic regression within each layer
Layout LayOut(std::span<const LayoutBox> boxes, std::span<const LayoutEdge> edges);

}  // namespace forge::tools
