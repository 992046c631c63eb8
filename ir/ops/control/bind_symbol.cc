// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/control/bind_symbol.h"

#include "ir/graph/module.h"
#include "ir/op/define.h"
#include "ir/type/host_value.h"

namespace forge::ir {

absl::StatusOr<Types> BindSymbol::infer(TypeSpan in) const {
  if (!symbol.is_constant() && symbol.part().op != Dim::Op::kSymbol)
    return InvalidArgument("bind_symbol: {} is no symbol", symbol.ToText());
  return Types{in[0]};
}

Values BindSymbol::decompose(Function& f, ValueSpan in) const {
  if (symbol.is_constant()) return {in[0]};
  f.Fail(InvalidArgument("bind_symbol: {} is not known before the run", symbol.ToText()));
  return {};
}

absl::Status BindSymbol::evaluate(Eval& e) const {
  e.out(0) = *e.in(0);
  return e.Bind(symbol, e.in(0)->i64(0));
}

Cost BindSymbol::cost(TypeSpan) const { return {.flops = 0, .terms = 0}; }

// What it does shows in the ops after it: it is tested where functions are run.
Cases BindSymbol::cases() { return {}; }

FORGE_DEFINE_OP(BindSymbol)

}  // namespace forge::ir
