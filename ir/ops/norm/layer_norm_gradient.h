// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct LayerNormGradient {
  int64_t axis = -1;
  bool columns = false;

  static constexpr OpInfo kInfo{
      .name = "layer_norm_gradient",
      .formula =
          "with z = (x - mean) * inverse_deviation and dz = dy * gamma: dx = inverse_deviation * "
          "(dz - mean(dz) - z * mean(dz * z)), means over axis and all after it; without mean it "
          "is 0, as is that of dz (RMS norm). dgamma and dbeta: the sums of dy * z and of dy over "
          "the "
          "rows",
      .inputs =
          "dy: float[*d]; x: =dy[*d]; inverse_deviation: wide(dy)[*s]; mean: wide(dy)[*s]?; gamma: "
          "=dy[*g]?",
      .outputs = "dx: =dy; dgamma: wide(dy)[*r]?; dbeta: wide(dy)[*r]?",
      .source = "torch.ops.aten.native_layer_norm_backward",
      .saved = "columns"};
  static constexpr Field kFields[] = {
      FieldOf<&LayerNormGradient::axis>("axis", "As that of `layer_norm`."),
      FieldOf<&LayerNormGradient::columns>("columns", "Adds dgamma and dbeta.")};

  // The places of operands.
  enum Operand : uint8_t { kDy, kX, kInverseDeviation, kMean, kGamma };
  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const LayerNormGradient*);

}  // namespace forge::ir
