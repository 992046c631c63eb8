// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/control/body_call.h"

#include <map>

#include "ir/type/host_value.h"

namespace forge::ir {
namespace {

// What the symbols of a body's argument types stand for at one node.
using Meaning = std::map<SymbolRef, Dim>;

// Encodings are assigned after fusion: how an operand lies does not change what the body computes.
absl::Status Match(const Type& argument, const Type& given, Meaning& meaning) {
  if (!argument.is_tensor() || !given.is_tensor() || argument.dtype() != given.dtype() ||
      argument.rank() != given.rank())
    return InvalidArgument("expected {}", argument.ToText());
  for (size_t a = 0; a < argument.shape().size(); ++a) {
    const Dim& d = argument.shape()[a];
    if (const Dim::Part part = d.part(); part.op == Dim::Op::kSymbol)
      meaning.emplace(part.symbol, given.shape()[a]);
    if (!Unify(d.Substitute(meaning), given.shape()[a]).ok())
      return InvalidArgument("expected {}", argument.ToText());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Types> TypesOfCall(const Function* body, TypeSpan in) {
  if (body == nullptr) return InvalidArgument("has no body");
  FORGE_RETURN_IF_ERROR(body->status());
  const auto arguments = body->arguments();
  if (arguments.size() != in.size())
    return InvalidArgument("body {} takes {} operands, not {}", body->name(), arguments.size(),
                           in.size());
  Meaning meaning;
  for (size_t i = 0; i < in.size(); ++i) {
    const absl::Status s = Match(body->type(arguments[i].value), in[i], meaning);
    if (!s.ok()) return Annotate(s, fmt::format("argument {}", arguments[i].name));
  }
  Types out;
  for (const Function::Result& r : body->results()) {
    const Type& t = body->type(r.value);
    Dims shape;
    for (const Dim& d : t.shape()) shape.push_back(d.Substitute(meaning));
    out.push_back(t.is_tensor() ? t.With(std::move(shape)) : t);
  }
  return out;
}

absl::Status EvaluateCall(const Function& body, Eval& e, size_t first) {
  std::vector<const HostValue*> arguments;
  for (size_t i = first; i < e.inputs(); ++i) arguments.push_back(e.in(i));
  FORGE_ASSIGN_OR_RETURN(std::vector<HostValue> results, e.Call(body, arguments));
  for (size_t i = 0; i < results.size(); ++i) e.out(i) = std::move(results[i]);
  return absl::OkStatus();
}

Cost CostOfCall(const Function& body) {
  Cost sum{.flops = 0, .terms = 0};
  for (const Node& node : body.nodes()) {
    const Types in = body.TypesOf(node.in);
    const Cost c = node.op.Cost(in);
    sum.flops = sum.flops + c.flops;
    sum.terms = Max(sum.terms, c.terms);
  }
  return sum;
}

}  // namespace forge::ir
