// SPDX-License-Identifier: Apache-2.0
// Vector products of 8-bit integers.
#pragma once
#include <cstdint>

#include "base/dtype.h"

namespace forge::cpu {

// y[i, j] = sum over k of a[i, k] * b[k, j] for up to kMaxRows rows of a; exact until i32 wraps.
struct ByteProduct {
  static constexpr int64_t kMaxRows = 8;
  int64_t rows = 0, depth = 0, columns = 0;
  const float* a = nullptr;   // [rows, depth]: 8-bit integers
  const void* b = nullptr;    // [depth, columns], rows `b_stride` elements apart
  DType b_type = DType::kI8;  // i8 or u8
  int64_t b_stride = 0;
  int32_t* y = nullptr;  // [rows, columns], rows `y_stride` elements apart
  int64_t y_stride = 0;
};
void MultiplyBytes(const ByteProduct& p);

}  // namespace forge::cpu
