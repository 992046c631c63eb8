// SPDX-License-Identifier: Apache-2.0
// A node seen as a region: the body of a fused node, or a function of its own around any other.
#pragma once
#include <memory>

#include "codegen/region/region.h"
#include "ir/graph/target.h"

namespace forge::codegen {

struct NodeBody {
  const ir::Function* function = nullptr;
  std::unique_ptr<ir::Function> own;  // what `function` points to, unless the node brought it
  // For each argument of `function`, then each result: which operand of the node's step it is
  // (operands first, absent ones too, then results).
  std::vector<uint32_t> step_operand;
  std::optional<Region> region;  // of `function`; always there
};

// The node's op must outlive the body where it is fused, and so must `caps`.
//   errors: those of inference and of Region::Of; Internal (a fused body does not fit its node)
absl::StatusOr<NodeBody> BodyOf(const ir::Candidate& node, const Caps& caps);

}  // namespace forge::codegen
