// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/creation/iota.h"

#include "ir/graph/module.h"
#include "ir/op/define.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/row_parts.h"
#include "ir/ops/movement/reshape.h"

namespace forge::ir {

absl::StatusOr<Types> Iota::infer(TypeSpan) const {
  FORGE_RETURN_IF_ERROR(CheckNumber(dtype));
  if (modulus.min() < 0) return InvalidArgument("a modulus of {}", modulus.ToText());
  return Types{Type::Tensor(dtype, {Max(0, count)})};
}

IndexMap Iota::map(TypeSpan, const Dims& at) const {
  const Dim number = begin + at[0] * step;
  return {.pieces = {{.operand = -1,
                      .index = {},
                      .value = modulus == Dim(0) ? number : Mod(number, modulus)}}};
}

Cases Iota::cases() {
  return {{Iota{.count = 5}, {}},
          {Iota{.dtype = DType::kI32, .begin = -3, .step = 7, .count = 5}, {}},
          {Iota{.begin = 10, .step = -3, .count = 4}, {}},
          {Iota{.begin = 4, .step = 0, .count = 3}, {}},
          {Iota{.begin = 4, .count = 0}, {}},
          {Iota{.begin = 4, .count = -2}, {}},
          {Iota{.begin = 7, .count = 1}, {}},
          {Iota{.dtype = DType::kU8, .begin = 250, .count = 10}, {}},
          {Iota{.dtype = DType::kI8, .begin = -130, .step = 13, .count = 20}, {}},
          {Iota{.dtype = DType::kF32, .count = 33}, {}},
          {Iota{.dtype = DType::kF16, .count = 2100}, {}},
          {Iota{.dtype = DType::kBF16, .count = 300}, {}},
          {Iota{.dtype = DType::kF64, .begin = -1, .count = 4}, {}},
          {Iota{.dtype = DType::kBool, .count = 3}, {}},
          {Iota{.dtype = DType::kF32, .begin = -9, .step = 2, .count = 33, .modulus = 7}, {}},
          {Iota{.begin = -9, .count = 19, .modulus = 4}, {}},
          {Iota{.dtype = DType::kI32, .begin = 5, .count = 4, .modulus = 1}, {}},
          {.op = Iota{.dtype = DType::kF32, .count = 1 << 22}, .in = {}, .bench = true},
          {.op = Iota{.count = 3, .modulus = -2}, .in = {}, .refuse = "modulus of -2"},
          {.op = Iota{.dtype = DType::kString, .count = 3}, .in = {}, .refuse = "string"}};
}

Value ScalarOf(Function& f, const Dim& extent, DType t) {
  if (extent.is_constant()) return f(Fill{.value = extent.constant(), .dtype = t}, {});
  return f(Reshape{}, {f(Iota{.dtype = t, .begin = extent, .count = 1}, {})});
}

FORGE_DEFINE_OP(Iota)

}  // namespace forge::ir
