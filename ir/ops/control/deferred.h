// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

// A node of a model file that becomes ops only when a run has told the types of its operands, or
// the values of some: its importer builds it then (runtime/plan/resolve.h).
struct Deferred {
  std::string format, node;
  int64_t results = 1;
  std::vector<int64_t> reads;

  static constexpr OpInfo kInfo{.name = "deferred",
                                .formula = "what the importer of the format makes of the node",
                                .inputs = "x: value?...",
                                .outputs = "y: value...",
                                .source = "made by importers"};
  static constexpr Field kFields[] = {
      FieldOf<&Deferred::format>("format", "The importer: onnx."),
      FieldOf<&Deferred::node>("node", "The node as the format stores it."),
      FieldOf<&Deferred::results>("results", "How many results the node has."),
      FieldOf<&Deferred::reads>("reads", "The operands whose elements decide types.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;  // fails: it has no ops yet
  static constexpr NotDifferentiable gradient{"its ops are not known yet"};
  absl::Status evaluate(Eval& e) const;
  Cost cost(TypeSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Deferred*);

}  // namespace forge::ir
