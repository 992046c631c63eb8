// SPDX-License-Identifier: Apache-2.0
// What the kernels of attention and of its gradients share: the scores of a tile of rows and keys,
// which stay in a cache.
#pragma once
#include <cmath>
#include <limits>

#include "cpu_runtime/kernels/kernel.h"
#include "cpu_runtime/kernels/product/tile_product.h"
#include "ir/ops/product/attention.h"

namespace forge::cpu {

// An operand as matrices, and the strides within one; a stride of 0 repeats.
struct Matrices {
  uint32_t operand = 0;
  View view;
  int64_t row = 0, column = 0;
};
Matrices MatricesOf(const View& v, uint32_t operand);
// The same with strides that the library takes for axes of extent 1.
Matrices FactorOf(const View& v, uint32_t operand);

// Attention of matrices that stand in leading axes.
struct AttentionShape {
  // Rows and keys of a tile. Its scores take 128 KiB, those of a row begin kKeys after the last's.
  static constexpr int64_t kRows = 128, kKeys = 256;

  std::vector<int64_t> outer;  // leading axes of results, then any two
  int64_t matrices = 1, rows = 0, keys = 0, head = 0, width = 0;
  Matrices q, k, v;
  std::optional<Matrices> mask;
  bool bool_mask = false;
  std::optional<int64_t> first, last;  // row i sees keys from i + first to i + last
  float scale = 1, softcap = 0;

  int64_t tiles() const { return (rows + kRows - 1) / kRows; }  // of a matrix's rows
  int64_t OffsetOf(const Matrices& m, int64_t matrix) const {
    return ElementsBefore(m.view, outer, matrix);
  }
  // The first element that a matrix of the result reads of an operand in floats.
  float* At(const Matrices& m, const AnchorCall::Arguments& a, int64_t matrix) const {
    return reinterpret_cast<float*>(a.operands[m.operand]) + OffsetOf(m, matrix);
  }
  // The same of the mask; null without one.
  const uint8_t* MaskAt(const AnchorCall::Arguments& a, int64_t matrix) const;
  // The keys that some of the rows from `row` to `end` see.
  struct Range {
    int64_t begin, end;
  };
  Range KeysOf(int64_t row, int64_t end) const;
  // The product that gives the scores of a tile, before masks. Throws dnnl::error.
  TileProduct Scores(int64_t tile_rows, int64_t tile_keys, size_t& scratchpad) const;
  // Masks the scores of a row from `key` on: -infinity where a key does not count.
  void Mask(const uint8_t* mask, int64_t row, int64_t key, int64_t tile_keys, float* scores) const;
};

// The attention of an anchor whose first operands are q, k and v, and whose operand `mask_at` is
// the mask, if it has one.
//   outer: its leading axes are those of results
AttentionShape AttentionShapeOf(const AnchorSite& site, const ir::Attention& op, size_t mask_at,
                                std::vector<int64_t> outer);

}  // namespace forge::cpu
