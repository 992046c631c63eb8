// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/control/if.h"

#include "ir/graph/module.h"
#include "ir/op/define.h"
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

absl::Status If::evaluate(Eval& e) const {
  if (e.in(0)->elements() != 1)
    return InvalidArgument("if: the condition has {} elements", e.in(0)->elements());
  std::vector<const HostValue*> captures;
  for (size_t i = 1; i < e.inputs(); ++i) captures.push_back(e.in(i));
  FORGE_ASSIGN_OR_RETURN(std::vector<HostValue> results,
                         e.Call(e.in(0)->i64(0) != 0 ? *yes : *no, captures));
  for (size_t i = 0; i < results.size(); ++i) e.out(i) = std::move(results[i]);
  return absl::OkStatus();
}

Cost If::cost(TypeSpan) const { return {.flops = 0, .terms = 0}; }

// A body belongs to a module: bodies are tested where they are made.
Cases If::cases() { return {}; }

FORGE_DEFINE_OP(If)

}  // namespace forge::ir
