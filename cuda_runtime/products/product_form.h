// SPDX-License-Identifier: Apache-2.0
// Matrix products that a library computes: which they are, and what of their node remains for a
// kernel.
#pragma once
#include <optional>

#include "codegen/region/region.h"

namespace forge::cuda {

// C[m, n] = A[m, k] B[k, n], by rows, for each matrix of a batch.
struct ProductForm {
  DType dtype = DType::kF32;  // of A, B and C; sums of halves are f32
  bool rounds = false;        // f32 to tf32
  bool transpose_a = false, transpose_b = false;
  int64_t m = 0, n = 0, k = 0, batch = 1;
  int64_t a_stride = 0, b_stride = 0;  // elements between the matrices of a batch; 0: there is one
  bool bias = false, relu = false;     // max(C + bias[n], 0)

  double flops() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
           static_cast<double>(batch);
  }
  uint64_t result_bytes() const {
    return static_cast<uint64_t>(batch * m * n * BitWidth(dtype) / 8);
  }
};

// The product of a body.
struct ProductOfBody {
  ProductForm form;
  size_t a = 0, b = 0, bias = 0;  // arguments of the body
  // What is made of the product, as a body whose last argument it is; null: it is the result.
  std::unique_ptr<ir::Function> rest;
};

// nullopt: the body has no product of two of its arguments as they lie, of known extents.
std::optional<ProductOfBody> ProductIn(const codegen::Region& region);

}  // namespace forge::cuda
