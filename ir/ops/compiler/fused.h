// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

// A region that is compiled to one program. `body` belongs to the module of the node's function.
struct Fused {
  Function* body = nullptr;

  static constexpr OpInfo kInfo{.name = "fused",
                                .formula = "the results of body",
                                .inputs = "x: any...",
                                .outputs = "y: any...",
                                .source = "made by the pass fuse"};
  static constexpr Field kFields[] = {FieldOf<&Fused::body>(
      "body",
      "Its arguments have the types of the operands, whose extents may stand for its symbols.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;  // the body's nodes
  static constexpr NotDifferentiable gradient{"differentiation comes before fusion"};
  absl::Status evaluate(Eval& e) const;
  Cost cost(TypeSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Fused*);

}  // namespace forge::ir
