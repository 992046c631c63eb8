// SPDX-License-Identifier: Apache-2.0
// Moving elements between tensors and blocks, and from one type to another. Blocks hold elements as
// HeldAs() says.
#pragma once
#include <cstdint>

#include "base/dtype.h"
#include "cpu_runtime/tape/scalar_loops.h"

namespace forge::cpu {

// Bytes of one stored element; 0 for types narrower than a byte and for strings.
size_t StoredBytes(DType t);
// Bytes of one element in a block.
inline size_t HeldBytes(DType t) { return StoredBytes(HeldAs(t)); }

// n elements that lie `stride` elements apart, into a block; stride 0 repeats one.
struct Run {
  const uint8_t* at;
  int64_t stride;
  size_t n;
};
void LoadRun(DType t, const Run& from, uint8_t* block);
struct MutableRun {
  uint8_t* at;
  int64_t stride;
  size_t n;
};
void StoreRun(DType t, const uint8_t* block, const MutableRun& to);
// The same for rows that lie `row_stride` elements apart, one after the other in the block.
struct RunRows {
  const uint8_t* at;
  int64_t row_stride, stride;
  size_t rows, columns;
};
void LoadRows(DType t, const RunRows& from, uint8_t* block);
struct MutableRunRows {
  uint8_t* at;
  int64_t row_stride, stride;
  size_t rows, columns;
};
void StoreRows(DType t, const uint8_t* block, const MutableRunRows& to);
// block[i] = tensor[address[i]], zeros where the address is not below `limit`.
void LoadAt(DType t, const uint8_t* tensor, const int64_t* address, uint64_t limit, size_t n,
            uint8_t* block);
// out[i] = mask[i] ? a[i] : b[i], for elements of so many bytes.
struct Choice {
  const uint8_t *mask, *a, *b;
};
void SelectElements(const Choice& from, size_t bytes, size_t n, uint8_t* out);
// One element in a block's form, from a number, as `cast` converts.
void HeldNumber(DType t, const Number& v, uint8_t* out);

// Casts a block of `from` to one of `to`, rounding to f16 and bf16 where they are asked for.
using ConvertLoop = void (*)(const uint8_t* in, uint8_t* out, size_t n);
ConvertLoop FindConvertLoop(DType from, DType to);  // null where either has no loops

// What element-wise code takes: bool, integers of 8 to 64 bits, floats of 16 to 64 bits.
bool IsNumberOrBool(DType t);

}  // namespace forge::cpu
