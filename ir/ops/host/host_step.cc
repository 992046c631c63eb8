// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/host/host_step.h"

#include "ir/graph/module.h"

namespace forge::ir {

Values NoDecomposition(Function& f, std::string_view op) {
  f.Fail(InvalidArgument("{}: the host computes it, between the parts of a plan", op));
  return {};
}

absl::StatusOr<int64_t> ScalarOperand(const Eval& e, size_t operand, std::string_view what) {
  const HostValue& v = *e.in(operand);
  if (v.elements() == 1) return v.i64(0);
  return InvalidArgument("{} has {} elements instead of one", what, v.elements());
}

}  // namespace forge::ir
