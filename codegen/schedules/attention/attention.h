// SPDX-License-Identifier: Apache-2.0
// softmax(scale * Q K^T, masked) V without the scores in memory: what schedules of attention share.
// Keys are met in blocks; what is summed so far is scaled when a block raises the largest score
// (online softmax, Milakov and Gimelshein 2018; FlashAttention, Dao et al. 2022).
#pragma once
#include "codegen/kernel/functions.h"
#include "codegen/schedules/emission.h"

namespace forge::codegen {

// The anchor's operands by what they mean. Each operand has the axes [batch..., its own two], of
// which all but the last may be one element for many.
struct AttentionOperands {
  ir::Dims outer;  // batch axes of the result
  ir::Dim batch = 1, rows = 1, keys = 1;
  int64_t head = 0, width = 0;  // elements of a key and of a value
  double scale = 1, softcap = 0;
  std::optional<ir::Dim> first, last;         // see ir::Attention::Band
  Type type;                                  // what sums are kept in
  bool masked = false, mask_chooses = false;  // has a mask; of bools, true where a score counts
  bool mask_by_key = false;                   // the mask is the same for all rows

  enum Operand : uint8_t { kQ, kK, kV, kMask };
  std::array<int, 4> lanes = {1, 1, 1, 1};  // of an operand: loaded at once along its last axis
  int64_t length(Operand which) const { return which == kV ? width : head; }
  // `lanes` elements from [batch, i, j] on.
  Val Load(Emission& m, Operand which, const ir::Dim& batch, const ir::Dim& i, const ir::Dim& j,
           int lanes) const;
  // A score, from the product of its row and key and from the mask's element, where there is one;
  // -inf for a key that the row does not see, or that lies outside.
  Val Score(Emission& m, const ir::Dim& row, const Position& key, Val product, Val mask) const;
};

// nullopt: the region's anchor is no attention, or its rows' length is not known.
std::optional<AttentionOperands> AttentionOf(const Region& r);

// Softmaxes of rows so far, and their values' weighted sums.
struct OnlineRows {
  OnlineRows(size_t values, Vals all) : values(values), all(std::move(all)) {}
  // So many rows that have seen no key.
  OnlineRows(Emission& m, const AttentionOperands& a, size_t rows, size_t values);
  size_t values;  // of a row
  Vals all;       // what a loop carries: the largest score, the sum and the values of each row
  Val& top(size_t row) { return all[row * (values + 2)]; }
  Val& sum(size_t row) { return all[row * (values + 2) + 1]; }
  Val& value(size_t row, size_t i) { return all[row * (values + 2) + 2 + i]; }
  // top(row) becomes the largest of it and `scores`, and what was summed is scaled to it.
  void Raise(size_t row, std::span<const Val> scores);
  // Hands a row's values over, the first of which belongs to a place of the result.
  struct Place {
    ir::Dim batch;
    Position row;
    ir::Dim column;
    int lanes = 1;  // neighbours stored at once
  };
  void Finish(Emission& m, const AttentionOperands& a, size_t row, const Place& to);
};

// Where a workgroup or a subgroup meets keys: `count` rows from `row` on, in blocks of `size` keys.
struct KeyBlocks {
  ir::Dim row;
  int64_t count = 0, size = 0;
  size_t own_rows = 0, values = 0;  // of an invocation; of each of those
  ir::Dim part = 0;                 // of so many, which share the blocks
  int64_t parts = 1;
};
// An invocation's rows after `body` has seen the first key of each block that some rows see.
OnlineRows ForBlocks(Emission& m, const AttentionOperands& a, const KeyBlocks& blocks,
                     absl::FunctionRef<void(const ir::Dim& first, OnlineRows& rows)> body);

}  // namespace forge::codegen
