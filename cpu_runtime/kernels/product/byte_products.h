// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit integers.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "cpu_runtime/program.h"

namespace forge::cpu {

// A matrix of i8 or u8; strides in elements.
struct ByteMatrix {
  DType dtype = DType::kI8;
  const uint8_t* data = nullptr;
  int64_t row_stride = 0, column_stride = 0;
};

// The same where element [i, j] lies rows[i] + columns[j] elements behind the first one: windows of
// an image are the columns of such a matrix.
struct ByteTable {
  DType dtype = DType::kI8;
  const uint8_t* data = nullptr;
  const int64_t *rows = nullptr, *columns = nullptr;
};

// Does the processor have AVX512_VNNI?
bool HasVnni();

// y[i, j] = sum over k of a[i, k] * b[k, j] for up to kMaxRows rows of a; exact until i32 wraps.
struct ByteProduct {
  static constexpr int64_t kMaxRows = 96;
  static constexpr uint64_t kScratchBytes = 64 << 10;
  int64_t rows = 0, depth = 0, columns = 0;
  ByteMatrix a;
  ByteTable b;
  int32_t* y = nullptr;
  int64_t y_row_stride = 0, y_column_stride = 0;
  uint8_t* scratch = nullptr;  // kScratchBytes, aligned to 64
  bool vnni = HasVnni();       // false: without its instructions, where there are any
};
void MultiplyBytes(const ByteProduct& p);

// Products of many matrices of one shape.
struct ByteProducts {
  std::string_view kernel;
  int64_t rows = 0, columns = 0;           // of y
  ByteMatrix a;                            // `data` is absent
  DType b = DType::kI8;                    // of b's elements
  std::vector<int64_t> b_rows, b_columns;  // as in ByteTable; b_rows has the depth
  int64_t y_row_stride = 0, y_column_stride = 0;
  struct Offsets {
    int64_t a, b, y;
  };
  std::vector<Offsets> matrices;  // where each begins, in elements
  uint32_t a_operand = 0, b_operand = 0;
  int threads = 1;
};
std::unique_ptr<AnchorCall> MakeByteProducts(ByteProducts p);

}  // namespace forge::cpu
