// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/indexing/scatter.h"

namespace forge::ir {

struct ScatterNd {
  int64_t batch_dims = 0;
  ScatterMode mode = ScatterMode::kSet;

  static constexpr OpInfo kInfo{
      .name = "scatter_nd",
      .formula =
          "y is x, then for each i.. in order y[n.., indices[n.., i.., 0], indices[n.., i.., 1] "
          ".., b..] becomes mode of itself and updates[n.., i.., b..]; indices as of `scatter`",
      .inputs = "x: number|bool[*d]; indices: i32|i64[*i]; updates: =x[*u]",
      .outputs = "y: =x",
      .source = "ONNX ScatterND-18; torch.index_put"};
  static constexpr Field kFields[] = {
      FieldOf<&ScatterNd::batch_dims>("batch_dims", "Leading axes that all operands share."),
      FieldOf<&ScatterNd::mode>("mode", "As of `scatter`.", "set|add|mul|min|max")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const ScatterNd*);

}  // namespace forge::ir
