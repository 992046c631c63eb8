// SPDX-License-Identifier: Apache-2.0
// Decision trees: a host step.
#include <cmath>

#include "formats/onnx/builders/families.h"
#include "ir/ops/host/tree_ensemble.h"

namespace forge::formats {
namespace {

std::vector<double> NumbersOf(OnnxNode& n, std::string_view name) {
  std::vector<double> out;
  if (const std::optional<ir::HostValue> v = n.Tensor(name))
    for (int64_t i = 0; i < v->elements(); ++i) out.push_back(v->f64(i));
  return out;
}

// The members of each node of mode 6 end with a NaN.
void ReadMembers(OnnxNode& n, ir::TreeEnsemble& op) {
  constexpr int64_t kMember = 6;
  const std::vector<double> listed = NumbersOf(n, "membership_values");
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
  ir::TreeEnsemble op{.splits = NumbersOf(n, "nodes_splits"),
                      .features = n.Ints("nodes_featureids"),
                      .yes = n.Ints("nodes_truenodeids"),
                      .no = n.Ints("nodes_falsenodeids"),
                      .missing = n.Ints("nodes_missing_value_tracks_true"),
                      .leaf_targets = n.Ints("leaf_targetids"),
                      .leaf_weights = NumbersOf(n, "leaf_weights"),
                      .roots = n.Ints("tree_roots"),
                      .targets = n.Int("n_targets", 1)};
  n.Ignore("nodes_hitrates");  // statistics of the training
  for (const double mode : NumbersOf(n, "nodes_modes")) {
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

constexpr OnnxOp kTreeOps[] = {
    {"ai.onnx.ml", "TreeEnsemble", 5, 1, 1, BuildTreeEnsemble},
};

}  // namespace

std::span<const OnnxOp> TreeOps() { return kTreeOps; }

}  // namespace forge::formats
