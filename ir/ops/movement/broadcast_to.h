// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct BroadcastTo {
  Dims shape = {};

  static constexpr OpInfo kInfo{
      .name = "broadcast_to",
      .formula = "y repeats x along axes that it lacks or has with extent 1",
      .inputs = "x: any[*d]",
      .outputs = "y: =x[*s]",
      .source = "ONNX Expand-13; torch.broadcast_to"};
  static constexpr Field kFields[] = {
      FieldOf<&BroadcastTo::shape>("shape", "Shape of the result; x must broadcast to it.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  IndexMap map(TypeSpan in, const Dims& at) const;
  Values gradient(const GradArgs& g) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const BroadcastTo*);

}  // namespace forge::ir
