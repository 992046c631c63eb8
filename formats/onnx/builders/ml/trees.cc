// SPDX-License-Identifier: Apache-2.0
// Decision trees: a host step.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "formats/onnx/builders/families.h"
#include "formats/onnx/builders/ml/scores.h"
#include "formats/onnx/builders/steps.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/host/tree_ensemble.h"

namespace forge::formats {
namespace {

// The members of each node of mode 6 end with a NaN.
void ReadMembers(OnnxNode& n, ir::TreeEnsemble& op) {
  constexpr int64_t kMember = 6;
  const std::vector<double> listed = NumbersOfTensor(n, "membership_values");
  size_t at = 0;
  for (const int64_t mode : op.modes) {
    if (mode == kMember) {
      for (; at < listed.size() && !std::isnan(listed[at]); ++at) op.members.push_back(listed[at]);
      ++at;
    }
    op.member_ends.push_back(static_cast<int64_t>(op.members.size()));
  }
}

// A child is a leaf where the flag says so.
void MarkLeaves(OnnxNode& n, std::vector<int64_t>& children, std::string_view flags) {
  const std::vector<int64_t> leaves = n.Ints(flags);
  if (leaves.size() != children.size())
    n.Fail("{} has {} entries for {} nodes", flags, leaves.size(), children.size());
  if (!n.status().ok()) return;
  for (size_t i = 0; i < children.size(); ++i)
    if (leaves[i] != 0) children[i] = ~children[i];
}

ir::Values BuildTreeEnsemble(OnnxNode& n) {
  ir::TreeEnsemble op{.splits = NumbersOfTensor(n, "nodes_splits"),
                      .features = n.Ints("nodes_featureids"),
                      .yes = n.Ints("nodes_truenodeids"),
                      .no = n.Ints("nodes_falsenodeids"),
                      .missing = n.Ints("nodes_missing_value_tracks_true"),
                      .leaf_targets = n.Ints("leaf_targetids"),
                      .leaf_weights = NumbersOfTensor(n, "leaf_weights"),
                      .roots = n.Ints("tree_roots"),
                      .targets = n.Int("n_targets", 1)};
  n.Ignore("nodes_hitrates");  // statistics of the training
  for (const double mode : NumbersOfTensor(n, "nodes_modes")) {
    if (!(mode >= 0 && mode <= 255)) n.Fail("nodes_modes has {}", mode);
    if (!n.status().ok()) return {};
    op.modes.push_back(static_cast<int64_t>(mode));
  }
  const int64_t sum = n.Int("aggregate_function", 1);
  if (sum < 0 || sum > 3) n.Fail("aggregate_function is {}", sum);
  op.sum = static_cast<ir::TreeSum>(sum);
  if (const int64_t post = n.Int("post_transform", 0); post != 0)
    n.Fail("post_transform {} is not supported", post);
  MarkLeaves(n, op.yes, "nodes_trueleafs");
  MarkLeaves(n, op.no, "nodes_falseleafs");
  ReadMembers(n, op);
  if (!n.status().ok()) return {};
  return n.fn().Add(op, std::array{n.in(0)});
}

// ---- until version 5: nodes and leaves of all trees in one list, each with the number of its tree

// The places of nodes in the list.
class ListedNodes {
 public:
  explicit ListedNodes(OnnxNode& n)
      : n_(n), trees_(n.Ints("nodes_treeids")), ids_(n.Ints("nodes_nodeids")) {
    if (trees_.size() != ids_.size()) n.Fail("{} trees of {} nodes", trees_.size(), ids_.size());
    for (size_t i = 0; i < std::min(trees_.size(), ids_.size()); ++i)
      if (!places_.emplace(std::pair(trees_[i], ids_[i]), i).second)
        n.Fail("tree {} has node {} twice", trees_[i], ids_[i]);
  }
  size_t size() const { return ids_.size(); }
  int64_t tree(size_t place) const { return trees_[place]; }
  // Fails, and gives 0, where there is none.
  size_t PlaceOf(int64_t tree, int64_t id) const {
    const auto at = places_.find({tree, id});
    if (at == places_.end()) n_.Fail("tree {} has no node {}", tree, id);
    return at == places_.end() ? 0 : at->second;
  }

 private:
  OnnxNode& n_;
  std::vector<int64_t> trees_, ids_;
  absl::flat_hash_map<std::pair<int64_t, int64_t>, size_t> places_;
};

std::optional<std::vector<int64_t>> ListedModes(OnnxNode& n, size_t count) {
  constexpr std::string_view kModes[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                         "BRANCH_EQ",  "BRANCH_NEQ", "LEAF"};
  std::vector<int64_t> modes;
  for (const std::string& word : n.Strings("nodes_modes")) {
    const auto at = std::ranges::find(kModes, word);
    if (at == std::end(kModes)) n.Fail("nodes_modes has '{}'", word);
    modes.push_back(at - std::begin(kModes));
  }
  if (modes.size() != count) n.Fail("{} modes of {} nodes", modes.size(), count);
  if (!n.status().ok()) return std::nullopt;
  return modes;
}

// What each leaf adds: attributes `of`_treeids and so on, for `targets` columns.
void ReadEntries(OnnxNode& n, const ListedNodes& nodes, const std::string& of,
                 std::span<const int64_t> leaf_of_place, ir::TreeEnsemble& op) {
  const std::vector<int64_t> trees = n.Ints(of + "_treeids"), ids = n.Ints(of + "_nodeids"),
                             targets = n.Ints(of + "_ids");
  const std::vector<double> weights = NumbersOrTensor(n, of + "_weights");
  if (trees.size() != ids.size() || targets.size() != ids.size() || weights.size() != ids.size())
    n.Fail("{} trees, {} nodes, {} targets, {} weights of leaves", trees.size(), ids.size(),
           targets.size(), weights.size());
  if (!n.status().ok()) return;
  std::vector<std::vector<size_t>> entries(op.leaf_ends.size());
  for (size_t i = 0; i < ids.size() && n.status().ok(); ++i) {
    const int64_t leaf = leaf_of_place[nodes.PlaceOf(trees[i], ids[i])];
    if (leaf < 0) n.Fail("node {} of tree {} has a weight and is no leaf", ids[i], trees[i]);
    if (leaf >= 0) entries[static_cast<size_t>(leaf)].push_back(i);
  }
  for (size_t leaf = 0; leaf < entries.size(); ++leaf) {
    for (const size_t i : entries[leaf]) {
      op.leaf_targets.push_back(targets[i]);
      op.leaf_weights.push_back(weights[i]);
    }
    op.leaf_ends[leaf] = static_cast<int64_t>(op.leaf_targets.size());
  }
}

// The trees, whose leaves have weights for `targets` columns in the attributes of `of`.
std::optional<ir::TreeEnsemble> ListedTrees(OnnxNode& n, const std::string& of, int64_t targets) {
  constexpr int64_t kLeaf = 6;
  for (const char* statistics : {"nodes_hitrates", "nodes_hitrates_as_tensor"})
    n.Ignore(statistics);
  const ListedNodes nodes(n);
  const auto modes = ListedModes(n, nodes.size());
  const std::vector<int64_t> features = n.Ints("nodes_featureids"),
                             yes = n.Ints("nodes_truenodeids"), no = n.Ints("nodes_falsenodeids"),
                             missing = n.Ints("nodes_missing_value_tracks_true");
  const std::vector<double> splits = NumbersOrTensor(n, "nodes_values");
  for (const size_t size : {features.size(), yes.size(), no.size(), splits.size()})
    if (size != nodes.size()) n.Fail("{} entries for {} nodes", size, nodes.size());
  if (!missing.empty() && missing.size() != nodes.size())
    n.Fail("{} entries for {} nodes", missing.size(), nodes.size());
  if (!modes || !n.status().ok()) return std::nullopt;
  ir::TreeEnsemble op{.targets = targets};
  std::vector<int64_t> place(nodes.size()), leaf(nodes.size(), -1);  // as children name them
  for (size_t i = 0, inner = 0; i < nodes.size(); ++i) {
    if ((*modes)[i] == kLeaf) {
      leaf[i] = static_cast<int64_t>(op.leaf_ends.size());
      op.leaf_ends.push_back(0);
    }
    place[i] = leaf[i] >= 0 ? ~leaf[i] : static_cast<int64_t>(inner++);
  }
  std::vector<bool> is_child(nodes.size(), false);
  const auto child = [&](size_t parent, int64_t id) {
    const size_t at = nodes.PlaceOf(nodes.tree(parent), id);
    is_child[at] = true;
    return place[at];
  };
  for (size_t i = 0; i < nodes.size() && n.status().ok(); ++i) {
    if (leaf[i] >= 0) continue;
    op.splits.push_back(splits[i]);
    op.features.push_back(features[i]);
    op.modes.push_back((*modes)[i]);
    op.yes.push_back(child(i, yes[i]));
    op.no.push_back(child(i, no[i]));
    if (!missing.empty()) op.missing.push_back(missing[i]);
  }
  op.member_ends.assign(op.splits.size(), 0);
  absl::flat_hash_set<int64_t> rooted;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (is_child[i]) continue;
    if (!rooted.insert(nodes.tree(i)).second) n.Fail("tree {} has two roots", nodes.tree(i));
    op.roots.push_back(place[i]);
  }
  ReadEntries(n, nodes, of, leaf, op);
  if (!n.status().ok()) return std::nullopt;
  return op;
}

// What the trees make of x, [rows, targets] in f32, and the numbers `base` beside, if any.
ir::Value ScoresOf(OnnxNode& n, const ir::TreeEnsemble& op, const std::vector<double>& base) {
  if (!base.empty() && static_cast<int64_t>(base.size()) != op.targets)
    n.Fail("{} base values for {} targets", base.size(), op.targets);
  if (!n.status().ok()) return {};
  const ir::Value x =
      n.type(0).dtype() == DType::kF64 ? n.in(0) : Converted(n, n.in(0), DType::kF32);
  const ir::Value y = Converted(n, n.fn().Add(op, std::array{x})[0], DType::kF32);
  return base.empty() ? y : y + NumbersConstant(n, DType::kF32, base);
}

ir::Values BuildTreeEnsembleRegressor(OnnxNode& n) {
  constexpr std::string_view kSums[] = {"AVERAGE", "SUM", "MIN", "MAX"};  // as in TreeSum
  const int64_t targets = n.Int("n_targets", 1);
  const std::string sum = n.String("aggregate_function", "SUM");
  const std::vector<double> base = NumbersOrTensor(n, "base_values");
  std::optional<ir::TreeEnsemble> op = ListedTrees(n, "target", targets);
  const auto* const way = std::ranges::find(kSums, sum);
  if (way == std::end(kSums)) n.Fail("aggregate_function is '{}'", sum);
  if (!op || !n.status().ok()) return {};
  op->sum = static_cast<ir::TreeSum>(way - std::begin(kSums));
  const ir::Value y = ScoresOf(n, *op, base);
  if (!y) return {};
  return {PostTransformed(n, PostTransform(n), y)};
}

// Trees of two classes whose leaves have weights for the first one only mean the second.
ir::Values BuildTreeEnsembleClassifier(OnnxNode& n) {
  const ClassLabels labels = LabelsOf(n, "classlabels_int64s");
  const std::vector<double> base = NumbersOrTensor(n, "base_values");
  std::optional<ir::TreeEnsemble> op = ListedTrees(n, "class", labels.count());
  if (!op || !n.status().ok()) return {};
  const auto all = [](const auto& list, auto holds) { return std::ranges::all_of(list, holds); };
  const bool in_two =
      labels.count() == 2 && all(op->leaf_targets, [](int64_t target) { return target == 0; });
  const bool is_share = all(op->leaf_weights, [](double w) { return w >= 0; });
  if (in_two) op->targets = 1;
  const ir::Value scores = ScoresOf(n, *op, base);
  if (!IsOfRank(n, scores, 2)) return {};
  if (!in_two) return Classified(n, labels, scores);
  return ClassifiedInTwo(n, labels, scores,
                         is_share ? InTwo{.threshold = 0.5, .sum = 1} : InTwo{0, 0});
}

constexpr OnnxOp kTreeOps[] = {
    {kMl, "TreeEnsemble", 5, 1, 1, BuildTreeEnsemble},
    {kMl, "TreeEnsembleClassifier", 1, 1, 1, BuildTreeEnsembleClassifier},
    {kMl, "TreeEnsembleRegressor", 1, 1, 1, BuildTreeEnsembleRegressor},
};

}  // namespace

std::span<const OnnxOp> TreeOps() { return kTreeOps; }

}  // namespace forge::formats
