// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/control/if.h"

#include "ir/graph/copier.h"
#include "ir/op/define.h"
#include "ir/ops/control/body_call.h"
#include "ir/ops/control/body_gradient.h"
#include "ir/type/host_value.h"

namespace forge::ir {
namespace {

// What is known of a result that has one of two types.
Type TypeOfEither(const Type& a, const Type& b) {
  if (a == b) return a;
  if (a.is_tensor() && b.is_tensor() && a.dtype() == b.dtype()) return Type::Unranked(a.dtype());
  return Type::Unknown();
}

}  // namespace

absl::StatusOr<Types> If::infer(TypeSpan) const {
  if (yes == nullptr || no == nullptr) return InvalidArgument("if: a body is missing");
  if (yes->results().size() != no->results().size())
    return InvalidArgument("if: the bodies have {} and {} results", yes->results().size(),
                           no->results().size());
  Types out;
  for (size_t i = 0; i < yes->results().size(); ++i)
    out.push_back(
        TypeOfEither(yes->type(yes->results()[i].value), no->type(no->results()[i].value)));
  return out;
}

Values If::decompose(Function& f, ValueSpan) const {
  f.Fail(InvalidArgument("if: the condition is not known before the run"));
  return {};
}

Values If::gradient(const GradArgs& g) const {
  const std::vector<size_t> wanted = WantedGradients(g, 1);
  Values operands(g.in.begin(), g.in.end());
  for (const Value& d : g.dout)
    if (d) operands.push_back(d);
  const auto differentiated = [&](const Function& body) {
    GradientBody out(g, body);
    Values captures, with;
    for (const Function::Input& a : body.arguments())
      captures.push_back(out.f().Argument(a.name, body.type(a.value)));
    const Values results = Inline(body, out.f(), captures);
    for (size_t k = 0; k < results.size(); ++k)
      if (g.dout[k])
        out.Seed(results[k], out.f().Argument(fmt::format("gradient.{}", k), g.dout[k].type()));
    for (const size_t i : wanted) with.push_back(captures[i - 1]);
    for (const Value& gradient : out.Append(with)) out.Return(gradient);
    return out.Finish();
  };
  const If branches{.yes = differentiated(*yes), .no = differentiated(*no)};
  return Gradients(g, wanted, g.fn.Add(branches, operands));
}

absl::Status If::evaluate(Eval& e) const {
  if (e.in(0)->elements() != 1)
    return InvalidArgument("if: the condition has {} elements", e.in(0)->elements());
  return EvaluateCall(e.in(0)->i64(0) != 0 ? *yes : *no, e, 1);
}

Cost If::cost(TypeSpan) const { return {.flops = 0, .terms = 0}; }

// A body belongs to a module: bodies are tested where they are made.
Cases If::cases() { return {}; }

FORGE_DEFINE_OP(If)

}  // namespace forge::ir
