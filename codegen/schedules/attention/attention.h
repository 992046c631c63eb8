// SPDX-License-Identifier: Apache-2.0
// softmax(scale * Q K^T, masked) V without storing the scores: the common part of the schedules of
// attention and of its gradients. Keys are processed in blocks; partial sums are rescaled when a
// block raises the maximum score (online softmax, Milakov and Gimelshein 2018; FlashAttention, Dao
// et al. 2022).
#pragma once
#include "codegen/kernel/functions.h"
#include "codegen/schedules/emission.h"
#include "ir/ops/product/attention.h"

namespace forge::codegen {

// The operands of attention. Each has axes [batch..., rows, columns]; all but the last may
// broadcast.
struct AttentionOperands {
  ir::Dims outer;  // batch axes of the result
  ir::Dim batch = 1, rows = 1, keys = 1;
  int64_t head = 0, width = 0;  // elements of a key, of a value
  double scale = 1, softcap = 0;
  std::optional<ir::Dim> first, last;  // see ir::Attention::Band
  Type type;                           // type of the sums
  bool masked = false,
       mask_chooses = false;  // has a mask; its elements are bools, true where a score counts
  bool mask_by_key = false;   // the mask is the same for all rows
  int mask_at = 3;            // the mask's place among the anchor's operands
  bool log_sums = false;      // see ir::Attention

  enum Operand : uint8_t { kQ, kK, kV, kMask };
  std::array<int, 4> lanes = {1, 1, 1,
                              1};  // by operand: elements loaded at once along the last axis
  int PlaceOf(Operand which) const { return which == kMask ? mask_at : which; }
  int64_t length(Operand which) const { return which == kV ? width : head; }
  // The index of an operand at [batch, i, j].
  ir::Dims IndexOf(const Region& r, Operand which, const ir::Dim& batch, const ir::Dim& i,
                   const ir::Dim& j) const;
  // Loads `lanes` elements from there on.
  Val Load(Emission& m, Operand which, const ir::Dim& batch, const ir::Dim& i, const ir::Dim& j,
           int lanes) const;
  // Computes a score from the product of its row and key, and the mask element if there is one;
  // -inf for keys that are masked or outside.
  Val Score(Emission& m, const ir::Dim& row, const Position& key, Val product, Val mask) const;
};

// Returns the operands; nullopt if the anchor is not attention, or the length of its rows is
// unknown.
std::optional<AttentionOperands> AttentionOf(const Region& r);
// The same of an anchor whose operands begin with q, k and v.
//   mask_at: the place of the mask among them
std::optional<AttentionOperands> OperandsOf(const Region& r, const ir::Attention& op, int mask_at);

// The blocks of `size` of an axis that have positions from `first` to `last`, where these are
// given.
struct Between {
  std::optional<ir::Dim> first, last;
};
Builder::Range BlocksOf(Emission& m, const ir::Dim& extent, int64_t size, const Between& seen);

// The state of online softmax for several rows: maximum, sum, and weighted sums of values.
struct OnlineRows {
  OnlineRows(size_t values, Vals all) : values(values), all(std::move(all)) {}
  // The initial state of `rows` rows.
  OnlineRows(Emission& m, const AttentionOperands& a, size_t rows, size_t values);
  size_t values;  // of a row
  Vals all;       // carried by loops: maximum score, sum and values of each row
  Val& top(size_t row) { return all[row * (values + 2)]; }
  Val& sum(size_t row) { return all[row * (values + 2) + 1]; }
  Val& value(size_t row, size_t i) { return all[row * (values + 2) + 2 + i]; }
  // Raises top(row) to the maximum of `scores`, and rescales the sums.
  void Raise(size_t row, std::span<const Val> scores);
  // Finishes a row: passes its values, from a place of the result on, to the region.
  struct Place {
    ir::Dim batch;
    Position row;
    ir::Dim column;
    int lanes = 1;  // elements stored at once
  };
  void Finish(Emission& m, const AttentionOperands& a, size_t row, const Place& to);
};

// The iteration of a workgroup or subgroup over keys: `count` rows from `row` on, in blocks of
// `size` keys.
struct KeyBlocks {
  ir::Dim row;
  int64_t count = 0, size = 0;
  size_t own_rows = 0, values = 0;  // rows of an invocation; values of each
  ir::Dim part = 0;                 // of `parts`, which divide the blocks
  int64_t parts = 1;
};
// The blocks that are not masked for all rows.
Builder::Range BlocksOf(Emission& m, const AttentionOperands& a, const KeyBlocks& blocks);
// Calls `body` with the first key of each of them, and returns the rows of the invocation.
OnlineRows ForBlocks(Emission& m, const AttentionOperands& a, const KeyBlocks& blocks,
                     absl::FunctionRef<void(const ir::Dim& first, OnlineRows& rows)> body);

}  // namespace forge::codegen
