// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/host/host_step.h"

namespace forge::ir {

enum class TreeSum : uint8_t { kMean, kSum, kMin, kMax };

// Decision trees. A child, or a root, is a node k, or leaf ~k.
struct TreeEnsemble {
  std::vector<double> splits = {};
  std::vector<int64_t> features = {}, modes = {}, yes = {}, no = {}, missing = {};
  std::vector<double> members = {};
  std::vector<int64_t> member_ends = {};
  std::vector<int64_t> leaf_targets = {};
  std::vector<double> leaf_weights = {};
  std::vector<int64_t> leaf_ends = {};
  std::vector<int64_t> roots = {};
  int64_t targets = 1;
  TreeSum sum = TreeSum::kSum;

  static constexpr OpInfo kInfo{
      .name = "tree_ensemble",
      .formula =
          "y[row, target] = sum, mean or extreme of what the leaves that the row of x reaches, "
          "one of each tree, add there",
      .inputs = "x: value",
      .outputs = "y: value",
      .source = "ONNX ai.onnx.ml TreeEnsemble-5",
      .host = true};
  static constexpr Field kFields[] = {
      FieldOf<&TreeEnsemble::splits>("splits", "What each node compares with."),
      FieldOf<&TreeEnsemble::features>("features", "The column that each node reads."),
      FieldOf<&TreeEnsemble::modes>("modes", "0 to 6: <=, <, >=, >, =, not =, is a member."),
      FieldOf<&TreeEnsemble::yes>("yes", "Where each node leads if the comparison holds."),
      FieldOf<&TreeEnsemble::no>("no", "Where it leads if not."),
      FieldOf<&TreeEnsemble::missing>("missing", "1: NaN leads to `yes`; none: nowhere."),
      FieldOf<&TreeEnsemble::members>("members", "The members of all nodes of mode 6."),
      FieldOf<&TreeEnsemble::member_ends>("member_ends", "Where those of each node end."),
      FieldOf<&TreeEnsemble::leaf_targets>("leaf_targets", "The targets of leaves."),
      FieldOf<&TreeEnsemble::leaf_weights>("leaf_weights", "What each adds there."),
      FieldOf<&TreeEnsemble::leaf_ends>("leaf_ends",
                                        "Where those of each leaf end; none: each "
                                        "has one."),
      FieldOf<&TreeEnsemble::roots>("roots", "Of each tree."),
      FieldOf<&TreeEnsemble::targets>("targets", "Columns of the result."),
      FieldOf<&TreeEnsemble::sum>("sum", "How leaves combine.", "mean|sum|min|max")};
  absl::StatusOr<Types> infer(TypeSpan in) const;
  FORGE_HOST_STEP_OF_TYPES
};
const OpDef& DefOf(const TreeEnsemble*);

}  // namespace forge::ir
