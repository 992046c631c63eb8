// SPDX-License-Identifier: Apache-2.0
// Reads and writes at the places that several tensors of indices, broadcast together, select.
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct IndexOp {
  std::vector<int64_t> axes = {};

  static constexpr OpInfo kInfo{
      .name = "index",
      .formula =
          "y[i..] = x at indices 0 [i..], indices 1 [i..] .. along the axes; the axes i.. "
          "stand in place of adjacent axes, else in front; indices as of `gather`",
      .inputs = "x: any[*d]; indices: i32|i64...",
      .outputs = "y: =x[*y]",
      .source = "torch.ops.aten.index; numpy's advanced indexing"};
  static constexpr Field kFields[] = {FieldOf<&IndexOp::axes>(
      "axes", "Those that the indices belong to, ascending; none means the first.")};

  Values decompose(Function& f, ValueSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const IndexOp*);

struct IndexPut {
  std::vector<int64_t> axes = {};
  bool accumulate = false;

  static constexpr OpInfo kInfo{
      .name = "index_put",
      .formula =
          "y is x, but what `index` selects is, or grows by, updates; indices as of "
          "`scatter`",
      .inputs = "x: number|bool[*d]; updates: =x; indices: i32|i64...",
      .outputs = "y: =x",
      .source = "torch.index_put"};
  static constexpr Field kFields[] = {
      FieldOf<&IndexPut::axes>("axes", "As of `index`."),
      FieldOf<&IndexPut::accumulate>("accumulate", "Adds, else the last of several stays.")};

  Values decompose(Function& f, ValueSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const IndexPut*);

}  // namespace forge::ir
