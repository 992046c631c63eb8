// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/norm/affine.h"

namespace forge::ir {

struct RmsNorm {
  std::vector<int64_t> axes = {-1};
  double epsilon = 1e-5;

  static constexpr OpInfo kInfo{
      .name = "rms_norm",
      .formula = "y = x / sqrt(mean(x^2) + epsilon) * gamma + beta; the mean over axes",
      .inputs = "x: float[*d]; gamma: =x[*g]?; beta: =x[*b]?",
      .outputs = "y: =x",
      .source = "torch.nn.functional.rms_norm; ONNX RMSNormalization-23"};
  static constexpr Field kFields[] = {
      FieldOf<&RmsNorm::axes>("axes", "Negative ones count from the end; none means all."),
      FieldOf<&RmsNorm::epsilon>("epsilon", "Added to the mean.")};

  Values decompose(Function& f, ValueSpan in) const {
    const Value x = Widened(in[0]);
    const int64_t rank = x.type().rank();
    const auto normal = NormalAxes(axes, rank);
    if (!normal.ok()) return f.Fail(normal.status()), Values{in[0]};
    const int64_t first = normal->empty() ? 0 : normal->front();
    const bool rows =
        rank > 0 && (normal->empty() || static_cast<int64_t>(normal->size()) == rank - first);
    const Value y =
        rows ? f(LayerNorm{.axis = first, .epsilon = epsilon, .subtract_mean = false}, {x})
             : x / sqrt(ReduceAxes(ReduceKind::kMean, x * x, axes) + epsilon);
    return {Narrowed(Affine(y, in[1], in[2]), in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    return {{RmsNorm{}, {"float[2,3,8]", "float[8]"}},
            {RmsNorm{.axes = {1}}, {"float[2,5,4]", "float[5,1]", "float[1,4]"}},
            {RmsNorm{.axes = {0, -1}, .epsilon = 0.5}, {"f32[4,3,9] in 90..110", "", "f32[3,9]"}},
            {RmsNorm{.axes = {}}, {"float[40] edges"}},
            {RmsNorm{}, {"f32[0,4]", "f32[4]"}},
            {RmsNorm{.axes = {2}}, {"f32[2,3]"}, "axis 2 is outside rank 2"},
            {RmsNorm{}, {"f32[2,1]", "f32[3]"}, "does not broadcast"}};
  }
};
const OpDef& DefOf(const RmsNorm*);

}  // namespace forge::ir
