// SPDX-License-Identifier: Apache-2.0
// A node seen as a region's body: that of a fused node, or a function of its own around any other.
#pragma once
#include <memory>

#include "ir/module.h"

namespace forge::vk {

struct NodeBody {
  const ir::Function* function = nullptr;
  std::unique_ptr<ir::Function> own;  // what `function` points to, unless the node brought it
  // For each argument of `function`, then each result: which operand of the node's step it is
  // (operands first, absent ones too, then results).
  std::vector<uint32_t> step_operand;
};

// errors: those of inference; Internal (a fused body does not fit its node)
absl::StatusOr<NodeBody> BodyOf(const ir::AnyOp& op, ir::TypeSpan in, ir::TypeSpan out);

}  // namespace forge::vk
