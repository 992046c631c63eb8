// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/compiler/relayout.h"

#include "ir/op/define.h"

namespace forge::ir {

absl::StatusOr<Types> Relayout::infer(TypeSpan in) const {
  if (!to.is_tensor() || to.dtype() != in[0].dtype() || !MayEqual(to.shape(), in[0].shape()))
    return InvalidArgument("{} does not hold what {} holds", to.ToText(), in[0].ToText());
  return Types{to};
}

IndexMap Relayout::map(TypeSpan, const Dims& at) const {
  return {.pieces = {{.operand = 0, .index = at}}};
}

Cases Relayout::cases() {
  const Type f32 = Type::Tensor(DType::kF32, {2, 3});
  return {{Relayout{f32}, {"f32[2,3]"}},
          {Relayout{f32}, {"f32[3,2]"}, "does not hold"},
          {Relayout{f32}, {"f16[2,3]"}, "does not hold"},
          {Relayout{}, {"f32[2,3]"}, "does not hold"}};
}

FORGE_DEFINE_OP(Relayout)

}  // namespace forge::ir
