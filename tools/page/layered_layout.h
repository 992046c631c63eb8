// SPDX-License-Identifier: Apache-2.0
// Layered layout of a graph: positions of nodes and routes of edges, with every edge downwards.
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
  uint32_t from, to;  // from < to: nodes are in topological order
};
struct Layout {
  std::vector<LayoutPoint> nodes;  // upper left corners
  // By edge, from bottom to top; empty for long edges, see LayOut.
  std::vector<std::vector<LayoutPoint>> routes;
  LayoutBox size;
};

// Lays out a graph in time near-linear in nodes and edges. An edge that spans more than 24 layers
// gets no route and is drawn as two labelled stubs.
//   boxes: sizes of the nodes, pixels     FORGE_CHECKs that from < to for every edge
//   source: Sugiyama, Tagawa, Toda, "Methods for visual understanding of hierarchical system
//   structures" (layers, barycentres); x by isotonic regression within each layer
Layout LayOut(std::span<const LayoutBox> boxes, std::span<const LayoutEdge> edges);

}  // namespace forge::tools
