// SPDX-License-Identifier: Apache-2.0
#include "tools/page/layered_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <random>

namespace forge::tools {
namespace {

using Edges = std::vector<LayoutEdge>;

std::vector<LayoutBox> Boxes(size_t n) {
  std::vector<LayoutBox> boxes;
  for (size_t i = 0; i < n; ++i) boxes.push_back({90.0 + static_cast<double>(i * 37 % 120), 46});
  return boxes;
}

// A network of blocks with branches and residuals, and one value that all of them read.
Edges Blocks(uint32_t nodes) {
  Edges edges;
  for (uint32_t i = 1; i < nodes; ++i) {
    edges.push_back({i - 1, i});
    if (i % 5 == 0) edges.push_back({i - 4, i});
    if (i % 17 == 0) edges.push_back({0, i});
  }
  return edges;
}

// Nodes lie inside, apart from each other, and edges end at them and go down.
void ExpectGood(const std::vector<LayoutBox>& boxes, const Edges& edges, const Layout& l) {
  ASSERT_EQ(l.nodes.size(), boxes.size());
  ASSERT_EQ(l.routes.size(), edges.size());
  std::map<double, std::vector<std::pair<double, double>>> rows;
  for (size_t i = 0; i < boxes.size(); ++i) {
    EXPECT_GE(l.nodes[i].x, 0);
    EXPECT_GE(l.nodes[i].y, 0);
    EXPECT_LE(l.nodes[i].x + boxes[i].width, l.size.width);
    EXPECT_LE(l.nodes[i].y + boxes[i].height, l.size.height);
    rows[l.nodes[i].y].emplace_back(l.nodes[i].x, l.nodes[i].x + boxes[i].width);
  }
  for (auto& [y, row] : rows) {
    std::sort(row.begin(), row.end());
    for (size_t i = 1; i < row.size(); ++i) EXPECT_GE(row[i].first, row[i - 1].second + 10);
  }
  for (size_t e = 0; e < edges.size(); ++e) {
    if (l.routes[e].empty()) continue;
    const LayoutPoint a = l.nodes[edges[e].from], b = l.nodes[edges[e].to];
    EXPECT_NEAR(l.routes[e].front().x, a.x + boxes[edges[e].from].width / 2, 1e-6);
    EXPECT_NEAR(l.routes[e].back().x, b.x + boxes[edges[e].to].width / 2, 1e-6);
    EXPECT_EQ(l.routes[e].back().y, b.y);
    EXPECT_TRUE(std::is_sorted(l.routes[e].begin(), l.routes[e].end(),
                               [](auto& p, auto& q) { return p.y < q.y; }));
  }
}

TEST(LayeredLayoutTest, TakesEmptyAndUnconnectedGraphs) {
  EXPECT_TRUE(LayOut({}, {}).nodes.empty());
  const auto boxes = Boxes(4);
  ExpectGood(boxes, {}, LayOut(boxes, {}));
}

TEST(LayeredLayoutTest, PutsAChainUnderneathEachOther) {
  const auto boxes = Boxes(5);
  const Edges edges = {{0, 1}, {1, 2}, {2, 3}, {3, 4}};
  const Layout l = LayOut(boxes, edges);
  ExpectGood(boxes, edges, l);
  for (size_t i = 1; i < 5; ++i) {
    EXPECT_GT(l.nodes[i].y, l.nodes[i - 1].y);
    EXPECT_NEAR(l.nodes[i].x + boxes[i].width / 2, l.nodes[0].x + boxes[0].width / 2, 1e-6);
  }
}

TEST(LayeredLayoutTest, PutsSourcesNearWhatReadsThem) {
  const auto boxes = Boxes(5);
  const Edges edges = {{0, 2}, {2, 3}, {1, 4}, {3, 4}};
  const Layout l = LayOut(boxes, edges);
  EXPECT_EQ(l.nodes[1].y, l.nodes[3].y);
}

TEST(LayeredLayoutTest, LeavesVeryLongEdgesToStubs) {
  const auto boxes = Boxes(60);
  const Edges edges = Blocks(60);
  const Layout l = LayOut(boxes, edges);
  ExpectGood(boxes, edges, l);
  EXPECT_TRUE(std::any_of(l.routes.begin(), l.routes.end(), [](auto& r) { return r.empty(); }));
  for (size_t e = 0; e < edges.size(); ++e)
    EXPECT_TRUE(edges[e].to - edges[e].from >= 5 || !l.routes[e].empty());
}

TEST(LayeredLayoutTest, UntanglesTwoChains) {
  // Two chains whose nodes come in turns, but named crosswise at each step.
  Edges edges;
  for (uint32_t i = 0; i + 3 < 40; i += 2) {
    edges.push_back({i, i + 3});
    edges.push_back({i + 1, i + 2});
  }
  const auto boxes = std::vector<LayoutBox>(40, LayoutBox{100, 46});
  const Layout l = LayOut(boxes, edges);
  ExpectGood(boxes, edges, l);
  for (size_t a = 0; a < edges.size(); a += 2) {
    const auto side = [&](uint32_t m, uint32_t n) { return l.nodes[m].x < l.nodes[n].x; };
    EXPECT_EQ(side(edges[a].from, edges[a + 1].from), side(edges[a].to, edges[a + 1].to));
  }
}

TEST(LayeredLayoutTest, IsTheSameEveryTimeAndQuick) {
  for (uint32_t n : {1500u, 10000u}) {
    const auto boxes = Boxes(n);
    const Edges edges = Blocks(n);
    const auto begin = std::chrono::steady_clock::now();
    const Layout l = LayOut(boxes, edges);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
    ExpectGood(boxes, edges, l);
    const Layout again = LayOut(boxes, edges);
    EXPECT_TRUE(std::equal(l.nodes.begin(), l.nodes.end(), again.nodes.begin(),
                           [](auto& p, auto& q) { return p.x == q.x && p.y == q.y; }));
  }
}

}  // namespace
}  // namespace forge::tools
