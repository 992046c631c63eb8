// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/control/loop.h"

#include "ir/graph/module.h"
#include "ir/op/define.h"

namespace forge::ir {
namespace {

absl::Status NotAStep() {
  return Unimplemented("loop: it runs as part of a plan, not as an op by itself");
}

}  // namespace

absl::StatusOr<Types> Loop::infer(TypeSpan in) const {
  if (body == nullptr) return InvalidArgument("loop: the body is missing");
  const size_t results = body->results().size(), arguments = body->arguments().size();
  if (carried < 0 || results < static_cast<size_t>(carried) + 1)
    return InvalidArgument("loop: the body has {} results, which is too few for {} carried values",
                           results, carried);
  if (arguments != in.size())
    return InvalidArgument("loop: the body has {} arguments, not {}", arguments, in.size());
  // The number of steps decides the extents, and a carried value may change its own.
  return Types(results - 1, Type::Unknown());
}

Values Loop::decompose(Function& f, ValueSpan) const {
  f.Fail(NotAStep());
  return {};
}

absl::Status Loop::evaluate(Eval&) const { return NotAStep(); }

Cost Loop::cost(TypeSpan) const { return {.flops = 0, .terms = 0}; }

// A body belongs to a module: bodies are tested where they are made.
Cases Loop::cases() { return {}; }

FORGE_DEFINE_OP(Loop)

}  // namespace forge::ir
