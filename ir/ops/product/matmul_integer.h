// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/product/matrix_product.h"

namespace forge::ir {

// Of 8-bit integers, exact until i32 wraps.
struct MatMulInteger {
  bool transpose_a = false, transpose_b = false;

  static constexpr OpInfo kInfo{
      .name = "matmul_integer",
      .formula = "y[..., i, j] = sum over k of a[..., i, k] * b[..., k, j], in i32",
      .inputs = "a: i8|u8[*d, m, k]; b: i8|u8[*e, l, n]",
      .outputs = "y: i32[*f, p, q]",
      .source = "ONNX MatMulInteger-10; torch._int_mm"};
  static constexpr Field kFields[] = {
      FieldOf<&MatMulInteger::transpose_a>("transpose_a", "a is stored as [..., k, i]."),
      FieldOf<&MatMulInteger::transpose_b>("transpose_b", "b is stored as [..., j, k].")};

  MatrixProduct product() const { return {transpose_a, transpose_b}; }
  absl::StatusOr<Types> infer(TypeSpan in) const;
  static constexpr Primitive decompose{};
  static constexpr NotDifferentiable gradient{"integers have no gradient"};
  absl::Status evaluate(Eval& e) const;
  Cost cost(TypeSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const MatMulInteger*);

}  // namespace forge::ir
