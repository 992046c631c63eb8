// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/control/optimization_barrier.h"

#include "ir/graph/module.h"
#include "ir/op/define.h"
#include "ir/type/host_value.h"

namespace forge::ir {

Values OptimizationBarrier::gradient(const GradArgs& g) const { return {g.dout[0]}; }

absl::Status OptimizationBarrier::evaluate(Eval& e) const {
  e.out(0) = *e.in(0);
  return absl::OkStatus();
}

Cases OptimizationBarrier::cases() {
  return {{OptimizationBarrier{}, {"any[2,3]"}},
          {OptimizationBarrier{}, {"f32[19] edges"}},
          {OptimizationBarrier{}, {"f32[]"}},
          {OptimizationBarrier{}, {"f32[2,0]"}}};
}

FORGE_DEFINE_OP(OptimizationBarrier)

}  // namespace forge::ir
