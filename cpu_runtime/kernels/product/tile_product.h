// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cpu_runtime/onednn/library.h"

namespace forge::cpu {

// The product of two matrices that one thread computes.
class TileProduct {
 public:
  struct Matrix {
    int64_t rows = 0, columns = 0;
    int64_t row = 0, column = 1;  // strides
  };
  // Throws dnnl::error.
  //   scratchpad: raised to what it needs, in bytes
  TileProduct(const Matrix& a, const Matrix& b, const Matrix& y, const dnnl::post_ops& after,
              size_t& scratchpad);
  // Does nothing where a matrix has no element; then y must be what it is to become.
  absl::Status Run(float* a, float* b, float* y, void* scratchpad) const;

 private:
  std::unique_ptr<PrimitiveCall> call_;  // null: nothing to do
};

}  // namespace forge::cpu
