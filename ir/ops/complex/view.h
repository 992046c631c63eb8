// SPDX-License-Identifier: Apache-2.0
// Complex numbers as pairs of their parts, without moving a byte.
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct ViewAsReal {
  static constexpr OpInfo kInfo{.name = "view_as_real",
                                .formula = "y[..., 0] = re x, y[..., 1] = im x",
                                .inputs = "x: complex[*d]",
                                .outputs = "y: real(x)[*d, 2]",
                                .source = "torch.view_as_real",
                                .keeps_order = true};

  static constexpr BySignature infer{};
  static constexpr Primitive decompose{};
  Values gradient(const GradArgs& g) const;
  absl::Status evaluate(Eval& e) const;
  Cost cost(TypeSpan) const { return {.flops = 0, .terms = 0}; }
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const ViewAsReal*);

struct ViewAsComplex {
  static constexpr OpInfo kInfo{.name = "view_as_complex",
                                .formula = "y = x[..., 0] + i x[..., 1]",
                                .inputs = "x: f32|f64[*d, 2]",
                                .outputs = "y: complex(x)[*d]",
                                .source = "torch.view_as_complex",
                                .keeps_order = true};

  static constexpr BySignature infer{};
  static constexpr Primitive decompose{};
  Values gradient(const GradArgs& g) const;
  absl::Status evaluate(Eval& e) const;
  Cost cost(TypeSpan) const { return {.flops = 0, .terms = 0}; }
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const ViewAsComplex*);

}  // namespace forge::ir
