// SPDX-License-Identifier: Apache-2.0
// A node as a region: the body of a fused node, or a new function around any other node.
#pragma once
#include <memory>

#include "codegen/region/region.h"
#include "ir/graph/target.h"

namespace forge::codegen {

struct NodeBody {
  const ir::Function* function = nullptr;
  std::unique_ptr<ir::Function> own;  // owns `function`, unless the node is fused
  // The step operand of each argument of `function`, then of each result. Step operands are the
  // operands of the node, including absent ones, then its results.
  std::vector<uint32_t> step_operand;
  std::optional<Region> region;  // of `function`; always set
};

// Returns the body of a node. `caps`, and the op of a fused node, must outlive it.
//   errors: those of inference and of Region::Of; Internal (a fused body does not fit its node)
absl::StatusOr<NodeBody> BodyOf(const ir::Candidate& node, const Caps& caps);

}  // namespace forge::codegen
