// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/fused.h"

#include "ir/host_value.h"
#include "ir/module.h"
#include "ir/ops/define.h"

namespace forge::ir {

absl::StatusOr<Types> Fused::infer(TypeSpan in) const {
  if (body == nullptr) return InvalidArgument("has no body");
  FORGE_RETURN_IF_ERROR(body->status());
  const auto arguments = body->arguments();
  if (arguments.size() != in.size())
    return InvalidArgument("body {} takes {} operands, not {}", body->name(), arguments.size(),
                           in.size());
  for (size_t i = 0; i < in.size(); ++i)
    if (body->type(arguments[i].value) != in[i])
      return InvalidArgument("operand {} is {}, body {} takes {}", i, in[i].ToText(), body->name(),
                             body->type(arguments[i].value).ToText());
  Types out;
  for (const Function::Result& r : body->results()) out.push_back(body->type(r.value));
  return out;
}

Values Fused::decompose(Function& f, ValueSpan in) const {
  std::vector<Value> values(body->value_count());
  for (size_t i = 0; i < body->arguments().size(); ++i) values[body->arguments()[i].value] = in[i];
  for (const Node& node : body->nodes()) {
    Values operands;
    for (uint32_t v : node.in) operands.push_back(v == kAbsent ? Value{} : values[v]);
    const Function::Scope scope(f, node.from);
    const Values results = f.Add(node.op, operands);
    for (size_t i = 0; i < results.size(); ++i) values[node.first_out + i] = results[i];
  }
  Values out;
  for (const Function::Result& r : body->results()) out.push_back(values[r.value]);
  return out;
}

absl::Status Fused::evaluate(Eval& e) const {
  std::vector<const HostValue*> arguments;
  for (size_t i = 0; i < e.inputs(); ++i) arguments.push_back(e.in(i));
  FORGE_ASSIGN_OR_RETURN(std::vector<HostValue> results, e.Call(*body, arguments));
  for (size_t i = 0; i < results.size(); ++i) e.out(i) = std::move(results[i]);
  return absl::OkStatus();
}

Cost Fused::cost(TypeSpan) const {
  Cost sum{.flops = 0, .terms = 0};
  for (const Node& node : body->nodes()) {
    const Types in = body->TypesOf(node.in);
    const Cost c = node.op.def().cost(node.op.def(), node.op.self(), in);
    sum.flops = sum.flops + c.flops;
    sum.terms = Max(sum.terms, c.terms);
  }
  return sum;
}

// A body belongs to a module: regions are tested where they are made.
Cases Fused::cases() { return {}; }

FORGE_DEFINE_OP(Fused)

}  // namespace forge::ir
