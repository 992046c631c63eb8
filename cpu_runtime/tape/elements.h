// SPDX-License-Identifier: Apache-2.0
// Copies between tensors and blocks, and conversion of element types. Blocks hold elements of the
// type HeldAs().
#pragma once
#include <cstdint>

#include "base/dtype.h"
#include "cpu_runtime/tape/scalar_loops.h"

namespace forge::cpu {

// Bytes of one stored element; 0 for types narrower than a byte and for strings.
size_t StoredBytes(DType t);
// Bytes of one element in a block.
inline size_t HeldBytes(DType t) { return StoredBytes(HeldAs(t)); }

// A run of n elements, `stride` elements apart; stride 0 repeats one element.
struct Run {
  const uint8_t* at;
  int64_t stride;
  size_t n;
};
// Loads a run into a block.
void LoadRun(DType t, const Run& from, uint8_t* block);
struct MutableRun {
  uint8_t* at;
  int64_t stride;
  size_t n;
};
// Stores a block to a run.
void StoreRun(DType t, const uint8_t* block, const MutableRun& to);
// Rows that start `row_stride` elements apart; they are consecutive in the block.
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
// Gathers: block[i] = tensor[address[i]]; 0 where the address is not below `limit`.
void LoadAt(DType t, const uint8_t* tensor, const int64_t* address, uint64_t limit, size_t n,
            uint8_t* block);
// Selects elements: out[i] = mask[i] ? a[i] : b[i].
struct Choice {
  const uint8_t *mask, *a, *b;
};
void SelectElements(const Choice& from, size_t bytes, size_t n, uint8_t* out);
// One element in a block's form, from a number, as `cast` converts.
void HeldNumber(DType t, const Number& v, uint8_t* out);

// A loop that casts a block of `from` to one of `to`, rounding to f16 and bf16 where `to` is one of
// them.
using ConvertLoop = void (*)(const uint8_t* in, uint8_t* out, size_t n);
ConvertLoop FindConvertLoop(DType from, DType to);  // null where either has no loops

// True for the types of element-wise code: bool, integers of 8 to 64 bits, floats of 16 to 64 bits.
bool IsNumberOrBool(DType t);

}  // namespace forge::cpu
