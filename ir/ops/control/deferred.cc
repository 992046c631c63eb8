// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/control/deferred.h"

#include "ir/graph/module.h"
#include "ir/op/define.h"

namespace forge::ir {
namespace {

absl::Status NotBuiltYet() {
  return InvalidArgument("deferred: the node is built when its operands are known");
}

}  // namespace

absl::StatusOr<Types> Deferred::infer(TypeSpan) const {
  if (results < 1 || results > UINT16_MAX)
    return InvalidArgument("deferred: results is {}, not 1 to {}", results, UINT16_MAX);
  return Types(static_cast<size_t>(results), Type::Unknown());
}

Values Deferred::decompose(Function& f, ValueSpan) const {
  f.Fail(NotBuiltYet());
  return {};
}

absl::Status Deferred::evaluate(Eval&) const { return NotBuiltYet(); }

Cost Deferred::cost(TypeSpan) const { return {.flops = 0, .terms = 0}; }

// It is tested with the importers that make it.
Cases Deferred::cases() { return {}; }

FORGE_DEFINE_OP(Deferred)

}  // namespace forge::ir
