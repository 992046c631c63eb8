// SPDX-License-Identifier: Apache-2.0
#include "tools/page/layered_layout.h"

#include <algorithm>
#include <cmath>

#include "base/status.h"

namespace forge::tools {
namespace {

// Pixels between neighbours, between layers, and around a line that passes a layer.
constexpr double kBeside = 28, kBelow = 52, kLine = 14, kMargin = 24;
constexpr uint32_t kLongest = 24;  // layers
constexpr int kOrderSweeps = 8, kPlaceSweeps = 10;

// A node, or a point where a long edge passes a layer.
struct Item {
  LayoutBox box;
  uint32_t layer = 0;
  std::vector<uint32_t> above, below;  // neighbours in the adjacent layers
  double x = 0;                        // of the centre
};

class Layouter {
 public:
  Layouter(std::span<const LayoutBox> boxes, std::span<const LayoutEdge> edges)
      : nodes_(boxes.size()), edges_(edges), items_(boxes.size()), passes_(edges.size()) {
    for (size_t i = 0; i < nodes_; ++i) items_[i].box = boxes[i];
  }

  Layout Run() {
    AssignLayers();
    AddPasses();
    FillLayers();
    for (int i = 0; i < kOrderSweeps; ++i) OrderLayers(i % 2 == 0);
    PlaceInOrder();
    for (int i = 0; i < kPlaceSweeps; ++i) PlaceLayers(i % 2 == 0);
    return Finish();
  }

 private:
  // As high as the operands allow; what has none, as low as its first reader allows.
  void AssignLayers() {
    std::vector<bool> has_above(nodes_, false);
    std::vector<uint32_t> first_reader(nodes_, UINT32_MAX);
    // Edges by target: layers of sources are final when their readers are looked at.
    std::vector<std::vector<uint32_t>> sources(nodes_);
    for (const LayoutEdge& e : edges_) {
      FORGE_CHECK(e.from < e.to && e.to < nodes_);
      sources[e.to].push_back(e.from);
      has_above[e.to] = true;
    }
    for (size_t n = 0; n < nodes_; ++n)
      for (uint32_t s : sources[n])
        items_[n].layer = std::max(items_[n].layer, items_[s].layer + 1);
    for (const LayoutEdge& e : edges_)
      first_reader[e.from] = std::min(first_reader[e.from], items_[e.to].layer);
    for (size_t n = 0; n < nodes_; ++n)
      if (!has_above[n] && first_reader[n] != UINT32_MAX) items_[n].layer = first_reader[n] - 1;
  }

  void Connect(uint32_t above, uint32_t below) {
    items_[above].below.push_back(below);
    items_[below].above.push_back(above);
  }

  void AddPasses() {
    for (size_t e = 0; e < edges_.size(); ++e) {
      const uint32_t first = items_[edges_[e].from].layer, last = items_[edges_[e].to].layer;
      if (last - first > kLongest) continue;
      uint32_t at = edges_[e].from;
      for (uint32_t layer = first + 1; layer < last; ++layer) {
        const auto pass = static_cast<uint32_t>(items_.size());
        items_.push_back({.box = {kLine, 0}, .layer = layer, .above = {}, .below = {}, .x = 0});
        passes_[e].push_back(pass);
        Connect(at, pass);
        at = pass;
      }
      Connect(at, edges_[e].to);
    }
  }

  void FillLayers() {
    uint32_t last = 0;
    for (const Item& i : items_) last = std::max(last, i.layer);
    layers_.resize(items_.empty() ? 0 : last + 1);
    for (uint32_t i = 0; i < items_.size(); ++i) layers_[items_[i].layer].push_back(i);
    place_.resize(items_.size());
    for (const auto& layer : layers_) Number(layer);
  }

  void Number(const std::vector<uint32_t>& layer) {
    for (size_t i = 0; i < layer.size(); ++i) place_[layer[i]] = static_cast<double>(i);
  }

  // Puts each item at the mean place of its neighbours in the layer before, downwards or upwards.
  void OrderLayers(bool down) {
    std::vector<double> wish(items_.size());
    for (size_t k = 0; k < layers_.size(); ++k) {
      auto& layer = layers_[down ? k : layers_.size() - 1 - k];
      for (uint32_t i : layer) {
        const auto& near = down ? items_[i].above : items_[i].below;
        double sum = 0;
        for (uint32_t n : near) sum += place_[n];
        wish[i] = near.empty() ? place_[i] : sum / static_cast<double>(near.size());
      }
      std::stable_sort(layer.begin(), layer.end(),
                       [&](uint32_t a, uint32_t b) { return wish[a] < wish[b]; });
      Number(layer);
    }
  }

  double Apart(uint32_t left, uint32_t right) const {
    return (items_[left].box.width + items_[right].box.width) / 2 + kBeside;
  }

  void PlaceInOrder() {
    for (const auto& layer : layers_) {
      double x = 0;
      for (size_t i = 0; i < layer.size(); ++i) {
        if (i > 0) x += Apart(layer[i - 1], layer[i]);
        items_[layer[i]].x = x;
      }
      for (uint32_t i : layer) items_[i].x -= x / 2;
    }
  }

  void PlaceLayers(bool down) {
    for (size_t k = 0; k < layers_.size(); ++k)
      PlaceLayer(layers_[down ? k : layers_.size() - 1 - k]);
  }

  // Each item wants to be at the mean of its neighbours; the nearest places that keep the order and
  // the distances are an isotonic regression, solved by pooling adjacent violators.
  void PlaceLayer(const std::vector<uint32_t>& layer) {
    struct Pool {
      double sum, count;
      double mean() const { return sum / count; }
    };
    std::vector<Pool> pools;
    std::vector<double> shift(layer.size(), 0);
    for (size_t i = 0; i < layer.size(); ++i) {
      if (i > 0) shift[i] = shift[i - 1] + Apart(layer[i - 1], layer[i]);
      pools.push_back({Wish(layer[i]) - shift[i], 1});
      while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
        const Pool last = pools.back();
        pools.pop_back();
        pools.back().sum += last.sum;
        pools.back().count += last.count;
      }
    }
    size_t i = 0;
    for (const Pool& p : pools)
      for (double n = 0; n < p.count; ++n, ++i) items_[layer[i]].x = p.mean() + shift[i];
  }

  double Wish(uint32_t item) const {
    const Item& it = items_[item];
    double sum = 0;
    for (uint32_t n : it.above) sum += items_[n].x;
    for (uint32_t n : it.below) sum += items_[n].x;
    const size_t count = it.above.size() + it.below.size();
    return count == 0 ? it.x : sum / static_cast<double>(count);
  }

  Layout Finish() const {
    Layout out;
    std::vector<double> top(layers_.size()), height(layers_.size(), 0);
    double left = 0, right = 0, y = kMargin;
    for (size_t k = 0; k < layers_.size(); ++k) {
      top[k] = y;
      for (uint32_t i : layers_[k]) {
        height[k] = std::max(height[k], items_[i].box.height);
        left = std::min(left, items_[i].x - items_[i].box.width / 2);
        right = std::max(right, items_[i].x + items_[i].box.width / 2);
      }
      y += height[k] + kBelow;
    }
    out.size = {right - left + 2 * kMargin, y - (layers_.empty() ? 0 : kBelow) + kMargin};
    const double to_right = kMargin - left;
    for (size_t n = 0; n < nodes_; ++n)
      out.nodes.push_back({items_[n].x - items_[n].box.width / 2 + to_right, top[items_[n].layer]});
    out.routes.resize(edges_.size());
    for (size_t e = 0; e < edges_.size(); ++e) {
      const Item &from = items_[edges_[e].from], &to = items_[edges_[e].to];
      if (to.layer - from.layer > kLongest) continue;
      out.routes[e].push_back({from.x + to_right, top[from.layer] + from.box.height});
      for (uint32_t p : passes_[e]) {
        const uint32_t layer = items_[p].layer;
        out.routes[e].push_back({items_[p].x + to_right, top[layer]});
        out.routes[e].push_back({items_[p].x + to_right, top[layer] + height[layer]});
      }
      out.routes[e].push_back({to.x + to_right, top[to.layer]});
    }
    return out;
  }

  size_t nodes_;
  std::span<const LayoutEdge> edges_;
  std::vector<Item> items_;                    // the nodes, then the passes
  std::vector<std::vector<uint32_t>> passes_;  // by edge
  std::vector<std::vector<uint32_t>> layers_;  // items from left to right
  std::vector<double> place_;                  // of an item in its layer
};

}  // namespace

Layout LayOut(std::span<const LayoutBox> boxes, std::span<const LayoutEdge> edges) {
  return Layouter(boxes, edges).Run();
}

}  // namespace forge::tools
