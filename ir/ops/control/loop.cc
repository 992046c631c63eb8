// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/control/loop.h"

#include "ir/graph/module.h"
#include "ir/op/define.h"

namespace forge::ir {
namespace {

absl::Status NotAStep() {
  return Unimplemented("loop: it runs as part of a plan, not as an op by itself");
}

Type Stacked(const Type& row, const Dim& rows) {
  Dims shape = {rows};
  shape.insert(shape.end(), row.shape().begin(), row.shape().end());
  return Type::Tensor(row.dtype(), std::move(shape));
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
  if (arguments < static_cast<size_t>(carried) + 2)
    return InvalidArgument("loop: {} operands are too few for {} carried values", in.size(),
                           carried);
  // A carried value may change its type; the symbols of a body may be its own.
  Types out;
  for (size_t i = 1; i < results; ++i) {
    const Type& t = body->type(body->results()[i].value);
    const bool is_carried = i <= static_cast<size_t>(carried);
    if (is_carried && t.is_tensor() && t == body->type(body->arguments()[i + 1].value))
      out.push_back(in[i + 1]);
    else if (is_carried || !t.is_tensor() || rows == Dim(-1))
      out.push_back(Type::Unknown());
    else
      out.push_back(Stacked(t, rows));
  }
  return out;
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
