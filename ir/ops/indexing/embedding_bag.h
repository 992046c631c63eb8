// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/reduction/reduce.h"

namespace forge::ir {

struct EmbeddingBag {
  ReduceKind kind = ReduceKind::kMean;
  bool include_last_offset = false;
  int64_t padding = -1;

  static constexpr OpInfo kInfo{
      .name = "embedding_bag",
      .formula =
          "y[b, j] = kind of weight[indices[i], j] * scale[i] over the indices of bag b, from "
          "offsets[b] to the next offset; without offsets over row b of the indices; 0 for an "
          "empty bag",
      .inputs =
          "weight: float[n, d]; indices: i32|i64[*i]; offsets: i32|i64[o]?; scale: =weight[*i]?",
      .outputs = "y: =weight[b, d]",
      .source = "torch.nn.functional.embedding_bag"};
  static constexpr Field kFields[] = {
      FieldOf<&EmbeddingBag::kind>("kind", "Only sums are scaled; max shares gradients evenly.",
                                   "sum|mean|max"),
      FieldOf<&EmbeddingBag::include_last_offset>(
          "include_last_offset", "The last offset is the end of the last bag, not a bag."),
      FieldOf<&EmbeddingBag::padding>("padding",
                                      "A row that belongs to no bag; below 0: there is none.")};

  Values decompose(Function& f, ValueSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const EmbeddingBag*);

}  // namespace forge::ir
