// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/compiler/fused.h"

#include "ir/graph/copier.h"
#include "ir/op/define.h"
#include "ir/ops/control/body_call.h"

namespace forge::ir {

absl::StatusOr<Types> Fused::infer(TypeSpan in) const { return TypesOfCall(body, in); }

Values Fused::decompose(Function& f, ValueSpan in) const { return Inline(*body, f, in); }

absl::Status Fused::evaluate(Eval& e) const { return EvaluateCall(*body, e); }

Cost Fused::cost(TypeSpan) const { return CostOfCall(*body); }

// A body belongs to a module: regions are tested where they are made.
Cases Fused::cases() { return {}; }

FORGE_DEFINE_OP(Fused)

}  // namespace forge::ir
