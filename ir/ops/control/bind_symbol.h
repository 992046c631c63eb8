// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

// Makes a number that a run computes an extent: the ops after it may have the symbol in their
// attributes, so that types that depend on data are stated as any others. A plan reads the number
// and goes on with the nodes that it decides (runtime/plan/resolve.h).
struct BindSymbol {
  Dim symbol;

  static constexpr OpInfo kInfo{.name = "bind_symbol",
                                .formula = "y = x; from here on the symbol is this number",
                                .inputs = "x: i64[]",
                                .outputs = "y: =x",
                                .source = "torch.export's unbacked symbols",
                                .ordered = true};
  static constexpr Field kFields[] = {FieldOf<&BindSymbol::symbol>(
      "symbol", "A symbol of the module, within whose bounds the number must lie.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;  // where the symbol is known
  static constexpr Zero gradient{};
  absl::Status evaluate(Eval& e) const;
  Cost cost(TypeSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const BindSymbol*);

}  // namespace forge::ir
