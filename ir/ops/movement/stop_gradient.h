// SPDX-License-Identifier: Apache-2.0
// The end of a path along which gradients flow.
#pragma once
#include "ir/ops/decomposing.h"

namespace forge::ir {

struct StopGradient {
  static constexpr OpInfo kInfo{.name = "stop_gradient",
                                .formula = "y = x; no gradient flows to x",
                                .inputs = "x: any[*d]",
                                .outputs = "y: =x",
                                .source = "torch.detach"};
  static constexpr Zero gradient{};

  Values decompose(Function&, ValueSpan in) const { return {in[0]}; }
  [[gnu::cold]] static Cases cases() {
    return {{StopGradient{}, {"any[5,2]"}},
            {StopGradient{}, {"f32[]"}},
            {StopGradient{}, {"f32[2,0]"}},
            {StopGradient{}, {"f32[19] edges"}},
            {StopGradient{}, {"f32[1,2,7,1,3]"}}};
  }
};
const OpDef& DefOf(const StopGradient*);

}  // namespace forge::ir
