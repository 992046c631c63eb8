// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/control/custom_gradient.h"

#include <algorithm>

#include "ir/graph/copier.h"
#include "ir/op/define.h"
#include "ir/ops/control/body_call.h"
#include "ir/ops/creation/fill.h"

namespace forge::ir {
namespace {

// The argument with a name; none: as many as there are.
size_t ArgumentOf(const Function& body, std::string_view name) {
  const auto arguments = body.arguments();
  return static_cast<size_t>(std::ranges::find(arguments, name, &Function::Input::name) -
                             arguments.begin());
}

// Errors: InvalidArgument (it cannot be the way back through `body`).
absl::Status CheckBackward(const Function& body, const Function& backward) {
  const size_t operands = body.arguments().size();
  const size_t takes = operands + 2 * body.results().size();
  if (backward.arguments().size() != takes)
    return InvalidArgument(
        "backward {} takes {} values, not {}: operands, results and what flows "
        "back to each result",
        backward.name(), backward.arguments().size(), takes);
  for (const Function::Result& r : backward.results())
    if (ArgumentOf(body, r.name) == operands)
      return InvalidArgument("backward {} returns '{}', which is no argument of {}",
                             backward.name(), r.name, body.name());
  for (const Function* f : {&body, &backward})
    for (const Function::VariableRead& read : f->reads())
      if (read.variable->role != Variable::Role::kConstant)
        return InvalidArgument("{} reads '{}', which must be an operand", f->name(),
                               read.variable->name);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Types> CustomGradient::infer(TypeSpan in) const {
  if (backward == nullptr) return InvalidArgument("has no backward");
  FORGE_ASSIGN_OR_RETURN(Types out, TypesOfCall(body, in));
  FORGE_RETURN_IF_ERROR(backward->status());
  FORGE_RETURN_IF_ERROR(CheckBackward(*body, *backward));
  return out;
}

Values CustomGradient::decompose(Function& f, ValueSpan in) const { return Inline(*body, f, in); }

Values CustomGradient::gradient(const GradArgs& g) const {
  Values operands(g.in.begin(), g.in.end());
  operands.insert(operands.end(), g.out.begin(), g.out.end());
  for (size_t i = 0; i < g.out.size(); ++i) {
    const Type& t = g.out[i].type();
    operands.push_back(g.dout[i] ? g.dout[i] : g.fn(Fill{0, t.dtype(), t.shape()}, {}));
  }
  const Values made = Inline(*backward, g.fn, operands);
  Values back(g.in.size());
  for (size_t i = 0; i < made.size() && g.fn.status().ok(); ++i) {
    const size_t to = ArgumentOf(*body, backward->results()[i].name);
    if (made[i].type() != g.in[to].type())
      g.fn.Fail(InvalidArgument("custom_gradient: {} flows back to '{}', which is {}",
                                made[i].type().ToText(), backward->results()[i].name,
                                g.in[to].type().ToText()));
    back[to] = made[i];
  }
  return back;
}

absl::Status CustomGradient::evaluate(Eval& e) const { return EvaluateCall(*body, e); }

Cost CustomGradient::cost(TypeSpan) const { return CostOfCall(*body); }

// A body belongs to a module: it is tested where it is made.
Cases CustomGradient::cases() { return {}; }

FORGE_DEFINE_OP(CustomGradient)

}  // namespace forge::ir
