// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/creation/fill.h"

#include "ir/graph/module.h"
#include "ir/op/define.h"
#include "ir/op/elements.h"
#include "ir/ops/complex/parts.h"
#include "ir/ops/elementwise/row_parts.h"

namespace forge::ir {

absl::StatusOr<Types> Fill::infer(TypeSpan) const {
  FORGE_RETURN_IF_ERROR(CheckNumber(dtype));
  FORGE_RETURN_IF_ERROR(CheckHolds(dtype, value));
  for (const Dim& d : shape)
    if (d.max() < 0) return InvalidArgument("shape {} has a negative dimension", ToText(shape));
  return Types{Type::Tensor(dtype, shape)};
}

IndexMap Fill::map(TypeSpan, const Dims&) const { return {.fill = value}; }

Values Fill::decompose(Function& f, ValueSpan) const {
  if (!Has(kComplexTypes, dtype)) return {};
  const std::complex<double> z = value.c128();
  const Value re = f(Fill{z.real(), RealOf(dtype), shape}, {});
  return {Joined({re, f(Fill{z.imag(), RealOf(dtype), shape}, {})})};
}

Cases Fill::cases() {
  return {{Fill{}, {}},
          {Fill{.value = -1.5, .shape = {2, 3}}, {}},
          {Fill{.value = 300, .dtype = DType::kU8, .shape = {5}}, {}},
          {Fill{.value = 7, .dtype = DType::kI64, .shape = {1, 0, 4}}, {}},
          {Fill{.value = 1, .dtype = DType::kBool, .shape = {3}}, {}},
          {Fill{.value = 65520, .dtype = DType::kF16, .shape = {33}}, {}},
          {Fill{(int64_t{1} << 53) + 1, DType::kI64, {3}}, {}},
          {Fill{UINT64_MAX, DType::kU64, {3}}, {}},
          {Fill{std::complex(1.5, -2.0), DType::kC64, {2, 3}}, {}},
          {Fill{2, DType::kC128, {5}}, {}},
          {Fill{INT64_MIN, DType::kI64, {3}}, {}},
          {.op = Fill{.value = std::complex(1.0, 2.0)}, .in = {}, .refuse = "is complex"},
          {.op = Fill{.shape = {-2}}, .in = {}, .refuse = "negative dimension"},
          {.op = Fill{.dtype = DType::kString}, .in = {}, .refuse = "string"}};
}

FORGE_DEFINE_OP(Fill)

}  // namespace forge::ir
