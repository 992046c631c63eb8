// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/creation/fill.h"

#include "ir/op/define.h"
#include "ir/ops/elementwise/elementwise.h"

namespace forge::ir {

absl::StatusOr<Types> Fill::infer(TypeSpan) const {
  FORGE_RETURN_IF_ERROR(CheckNumber(dtype));
  for (const Dim& d : shape)
    if (d.max() < 0) return InvalidArgument("shape {} has a negative dimension", ToText(shape));
  return Types{Type::Tensor(dtype, shape)};
}

IndexMap Fill::map(TypeSpan, const Dims&) const { return {.fill = value}; }

Cases Fill::cases() {
  return {{Fill{}, {}},
          {Fill{.value = -1.5, .shape = {2, 3}}, {}},
          {Fill{.value = 300, .dtype = DType::kU8, .shape = {5}}, {}},
          {Fill{.value = 7, .dtype = DType::kI64, .shape = {1, 0, 4}}, {}},
          {Fill{.value = 1, .dtype = DType::kBool, .shape = {3}}, {}},
          {Fill{.value = 65520, .dtype = DType::kF16, .shape = {33}}, {}},
          {.op = Fill{.shape = {-2}}, .in = {}, .refuse = "negative dimension"},
          {.op = Fill{.dtype = DType::kString}, .in = {}, .refuse = "string"}};
}

FORGE_DEFINE_OP(Fill)

}  // namespace forge::ir
