// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/op.h"

namespace forge::ir {

struct ShapeOf {
  static constexpr OpInfo kInfo{.name = "shape_of",
                                .formula = "y[i] = extent of axis i of x",
                                .inputs = "x: any[*d]",
                                .outputs = "y: i64[r]",
                                .source = "ONNX Shape-15"};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  static constexpr Primitive decompose{};
  static constexpr Zero gradient{};
  absl::Status evaluate(Eval& e) const;
  Cost cost(TypeSpan in) const;
  std::optional<Dims> contents(TypeSpan in, std::span<const std::optional<Dims>> known) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const ShapeOf*);

}  // namespace forge::ir
