// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/host/tree_ensemble.h"

#include <algorithm>
#include <cmath>

#include "ir/op/define.h"

namespace forge::ir {
namespace {

absl::Status Check(const TreeEnsemble& t, const HostValue& x) {
  const size_t nodes = t.splits.size(), entries = t.leaf_weights.size(),
               leaves = t.leaf_ends.empty() ? entries : t.leaf_ends.size();
  for (const auto* list : {&t.features, &t.modes, &t.yes, &t.no, &t.member_ends})
    if (list->size() != nodes)
      return InvalidArgument("{} entries for {} nodes", list->size(), nodes);
  if (t.leaf_targets.size() != entries || (!t.missing.empty() && t.missing.size() != nodes))
    return InvalidArgument("{} targets for {} weights", t.leaf_targets.size(), entries);
  if (x.rank() != 2) return InvalidArgument("{} is no matrix", x.type().ToText());
  if (t.targets < 1 || t.targets > 1 << 20) return InvalidArgument("{} targets", t.targets);
  const auto leads = [&](int64_t to) {
    return to >= 0 ? to < static_cast<int64_t>(nodes) : ~to < static_cast<int64_t>(leaves);
  };
  int64_t end = 0;
  for (size_t i = 0; i < nodes; ++i) {
    if (!leads(t.yes[i]) || !leads(t.no[i]) || t.features[i] < 0 || t.features[i] >= x.dim(1) ||
        t.member_ends[i] < end || t.member_ends[i] > static_cast<int64_t>(t.members.size()))
      return InvalidArgument("node {} does not fit", i);
    end = t.member_ends[i];
  }
  end = 0;
  for (const int64_t e : t.leaf_ends) {
    if (e < end || e > static_cast<int64_t>(entries)) return InvalidArgument("leaf end {}", e);
    end = e;
  }
  for (const int64_t root : t.roots)
    if (!leads(root)) return InvalidArgument("root {} does not fit", root);
  for (const int64_t target : t.leaf_targets)
    if (target < 0 || target >= t.targets) return InvalidArgument("target {}", target);
  return absl::OkStatus();
}

bool Holds(const TreeEnsemble& t, size_t node, double v) {
  if (std::isnan(v) && !t.missing.empty() && t.missing[node] != 0) return true;
  const double split = t.splits[node];
  switch (t.modes[node]) {
    case 0:
      return v <= split;
    case 1:
      return v < split;
    case 2:
      return v >= split;
    case 3:
      return v > split;
    case 4:
      return v == split;
    case 5:
      return v != split;
    default:
      break;
  }
  const auto begin = t.members.begin() + (node == 0 ? 0 : t.member_ends[node - 1]);
  return std::find(begin, t.members.begin() + t.member_ends[node], v) !=
         t.members.begin() + t.member_ends[node];
}

// The leaf that row `row` reaches.
absl::StatusOr<size_t> LeafOf(const TreeEnsemble& t, int64_t root, const HostValue& x,
                              int64_t row) {
  int64_t at = root;
  for (size_t steps = 0; at >= 0; ++steps) {
    if (steps > t.splits.size()) return InvalidArgument("a tree has a cycle");
    const auto node = static_cast<size_t>(at);
    at = Holds(t, node, x.f64(row * x.dim(1) + t.features[node])) ? t.yes[node] : t.no[node];
  }
  return static_cast<size_t>(~at);
}

// What leaf number `leaf` adds: entries begin .. end - 1.
std::pair<size_t, size_t> EntriesOf(const TreeEnsemble& t, size_t leaf) {
  if (t.leaf_ends.empty()) return {leaf, leaf + 1};
  return {leaf == 0 ? 0 : static_cast<size_t>(t.leaf_ends[leaf - 1]),
          static_cast<size_t>(t.leaf_ends[leaf])};
}

double Combined(TreeSum how, double sum, double leaf, bool first) {
  if (first) return leaf;
  if (how == TreeSum::kMin) return std::min(sum, leaf);
  return how == TreeSum::kMax ? std::max(sum, leaf) : sum + leaf;
}

}  // namespace

absl::StatusOr<Types> TreeEnsemble::infer(TypeSpan in) const {
  if (!in[0].is_tensor() || in[0].rank() != 2 || targets < 1) return Types{Type::Unknown()};
  return Types{Type::Tensor(in[0].dtype(), {in[0].shape()[0], targets})};
}

absl::Status TreeEnsemble::evaluate(Eval& e) const {
  const HostValue& x = *e.in(0);
  FORGE_RETURN_IF_ERROR(Check(*this, x));
  FORGE_ASSIGN_OR_RETURN(HostValue out, HostValue::Zeros(x.dtype(), std::array{x.dim(0), targets}));
  for (int64_t row = 0; row < x.dim(0); ++row) {
    std::vector<double> sums(static_cast<size_t>(targets));
    std::vector<bool> reached(sums.size());
    for (const int64_t root : roots) {
      FORGE_ASSIGN_OR_RETURN(const size_t leaf, LeafOf(*this, root, x, row));
      const auto [begin, end] = EntriesOf(*this, leaf);
      for (size_t i = begin; i < end; ++i) {
        const auto target = static_cast<size_t>(leaf_targets[i]);
        sums[target] = Combined(sum, sums[target], leaf_weights[i], !reached[target]);
        reached[target] = true;
      }
    }
    for (size_t k = 0; k < sums.size(); ++k)
      out.Set(row * targets + static_cast<int64_t>(k),
              sum == TreeSum::kMean ? sums[k] / static_cast<double>(roots.size()) : sums[k]);
  }
  e.out(0) = std::move(out);
  return absl::OkStatus();
}

FORGE_DEFINE_OP(TreeEnsemble)

}  // namespace forge::ir
