// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct LayerNorm {
  int64_t axis = -1;
  double epsilon = 1e-5;
  bool subtract_mean = true;
  bool statistics = false;

  static constexpr OpInfo kInfo{
      .name = "layer_norm",
      .formula =
          "y = (x - mean) / sqrt(variance + epsilon) * gamma + beta; statistics over axis "
          "and all after it, the variance biased; without subtract_mean the mean is taken as 0 "
          "(RMS norm)",
      .inputs = "x: float[*d]; gamma: =x[*g]?; beta: =x[*b]?",
      .outputs = "y: =x; mean: wide(x)[*s]?; inverse_deviation: wide(x)[*s]?",
      .source =
          "ONNX LayerNormalization-17, RMSNormalization-23; torch.nn.functional.layer_norm, "
          "rms_norm; torch.native_layer_norm",
      .saved = "statistics"};
  static constexpr Field kFields[] = {
      FieldOf<&LayerNorm::axis>("axis",
                                "The first of those normalised; negative counts from the "
                                "end. gamma and beta broadcast to them."),
      FieldOf<&LayerNorm::epsilon>("epsilon", "Added to the variance."),
      FieldOf<&LayerNorm::subtract_mean>("subtract_mean", "False: RMS norm."),
      FieldOf<&LayerNorm::statistics>("statistics",
                                      "Adds mean, and 1 / sqrt(variance + epsilon), of each row; "
                                      "normalised axes have extent 1.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;
  Values gradient(const GradArgs& g) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const LayerNorm*);

// `axis` and all after it, of tensors of this rank.
std::vector<int64_t> AxesOfNorm(int64_t axis, int64_t rank);

}  // namespace forge::ir
