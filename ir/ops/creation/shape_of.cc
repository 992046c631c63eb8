// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/creation/shape_of.h"

#include "ir/graph/module.h"
#include "ir/op/define.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/movement/concat.h"
#include "ir/type/host_value.h"

namespace forge::ir {

absl::StatusOr<Types> ShapeOf::infer(TypeSpan in) const {
  return Types{Type::Tensor(DType::kI64, {in[0].rank()})};
}

Values ShapeOf::decompose(Function& f, ValueSpan in) const {
  Values extents;
  for (const Dim& d : in[0].type().shape())
    extents.push_back(f.Add(Iota{.begin = d, .count = 1}, {})[0]);
  if (extents.empty()) return f.Add(Iota{}, {});
  return f.Add(Concat{}, extents);
}

absl::Status ShapeOf::evaluate(Eval& e) const {
  for (int a = 0; a < e.in(0)->rank(); ++a) e.out(0).SetI64(a, e.in(0)->dim(a));
  return absl::OkStatus();
}

Cost ShapeOf::cost(TypeSpan) const { return {.flops = 0, .terms = 0}; }

std::optional<Dims> ShapeOf::contents(TypeSpan in, Known) const { return in[0].shape(); }

Cases ShapeOf::cases() {
  return {{ShapeOf{}, {"any[2,3,4]"}}, {ShapeOf{}, {"f32[]"}}, {ShapeOf{}, {"f32[0,5]"}}};
}

FORGE_DEFINE_OP(ShapeOf)

}  // namespace forge::ir
