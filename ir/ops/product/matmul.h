// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/product/matrix_product.h"

namespace forge::ir {

struct MatMul {
  bool transpose_a = false, transpose_b = false;

  static constexpr OpInfo kInfo{
      .name = "matmul",
      .formula = "y[..., i, j] = sum over k of a[..., i, k] * b[..., k, j]",
      .inputs = "a: float|complex[*d, m, k]; b: =a[*e, l, n]",
      .outputs = "y: =a[*f, p, q]",
      .source = "ONNX MatMul-13, Gemm-13; torch.matmul",
      .product = true};
  static constexpr Field kFields[] = {
      FieldOf<&MatMul::transpose_a>("transpose_a", "a is stored as [..., k, i]."),
      FieldOf<&MatMul::transpose_b>("transpose_b", "b is stored as [..., j, k].")};

  MatrixProduct product() const { return {transpose_a, transpose_b}; }
  absl::StatusOr<Types> infer(TypeSpan in) const;
  static constexpr Primitive decompose{};
  Values gradient(const GradArgs& g) const;
  absl::Status evaluate(Eval& e) const;
  Cost cost(TypeSpan in) const;
  OnComplex on_complex() const { return OnComplex::kProduct; }
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const MatMul*);

}  // namespace forge::ir
