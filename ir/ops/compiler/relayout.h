// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct Relayout {
  Type to = {};

  static constexpr OpInfo kInfo{.name = "relayout",
                                .formula = "y = x in another encoding",
                                .inputs = "x: any[*d]",
                                .outputs = "y: =x[*d]",
                                .source = "made by the pass that assigns encodings",
                                .encodes = true};
  static constexpr Field kFields[] = {
      FieldOf<&Relayout::to>("to", "Type of the result: dtype and shape of x.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  IndexMap map(TypeSpan in, const Dims& at) const;
  static constexpr NotDifferentiable gradient{"encodings are assigned after differentiation"};
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Relayout*);

}  // namespace forge::ir
