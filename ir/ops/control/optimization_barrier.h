// SPDX-License-Identifier: Apache-2.0
// A value that passes take for another one, so that what is computed of it again stays apart from
// what was computed of it before.
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct OptimizationBarrier {
  static constexpr OpInfo kInfo{.name = "optimization_barrier",
                                .formula =
                                    "y = x; what is computed of y is not merged with what "
                                    "is computed of x",
                                .inputs = "x: any[*d]",
                                .outputs = "y: =x",
                                .source = "StableHLO optimization_barrier",
                                .keeps_order = true,
                                .ordered = true};

  static constexpr BySignature infer{};
  static constexpr Primitive decompose{};
  Values gradient(const GradArgs& g) const;
  absl::Status evaluate(Eval& e) const;
  Cost cost(TypeSpan) const { return {.flops = 0, .terms = 0}; }
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const OptimizationBarrier*);

}  // namespace forge::ir
