// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct ShapeOf {
  static constexpr OpInfo kInfo{.name = "shape_of",
                                .formula = "y[i] = extent of axis i of x",
                                .inputs = "x: any[*d]",
                                .outputs = "y: i64[r]",
                                .source = "ONNX Shape-15"};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;  // an iota of one element for each extent
  static constexpr Zero gradient{};
  absl::Status evaluate(Eval& e) const;
  Cost cost(TypeSpan in) const;
  std::optional<Dims> contents(TypeSpan in, std::span<const std::optional<Dims>> known) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const ShapeOf*);

}  // namespace forge::ir
