// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/norm/affine.h"
#include "ir/ops/reduction/variance.h"

namespace forge::ir {

struct BatchNormTraining {
  int64_t axis = 1;
  double epsilon = 1e-5, momentum = 0.1, correction = 1;

  static constexpr OpInfo kInfo{
      .name = "batch_norm_training",
      .formula =
          "y = (x - m) / sqrt(v + epsilon) * gamma + beta; m and v are mean and biased "
          "variance over all axes but one; running statistics r become (1 - momentum) * r + "
          "momentum * those of x",
      .inputs = "x: float[*d]; gamma: =x[c]; beta: =x[c]; mean: =x[c]; variance: =x[c]",
      .outputs = "y: =x; new_mean: =x[c]; new_variance: =x[c]",
      .source = "ONNX BatchNormalization-15 (training); torch.nn.functional.batch_norm"};
  static constexpr Field kFields[] = {
      FieldOf<&BatchNormTraining::axis>("axis", "Of extent c; negative counts from the end."),
      FieldOf<&BatchNormTraining::epsilon>("epsilon", "Added to the variance."),
      FieldOf<&BatchNormTraining::momentum>("momentum", "The share of x in running statistics."),
      FieldOf<&BatchNormTraining::correction>(
          "correction", "As of `variance`, for the running one; ONNX has 0.")};

  Values decompose(Function& f, ValueSpan in) const {
    const DType t = in[0].type().dtype();
    const Value x = Widened(in[0]);
    const auto along = NormalAxis(axis, in[0].type().rank());
    if (!along.ok()) f.Fail(along.status());
    if (along.ok() && in[0].type().rank() < 2) f.Fail(InvalidArgument("x has one axis only"));
    if (!f.status().ok()) return {in[0], in[1], in[1]};
    std::vector<int64_t> over;
    for (int64_t a = 0; a < in[0].type().rank(); ++a)
      if (a != *along) over.push_back(a);
    const Value mean = ReduceAxes(ReduceKind::kMean, x, over);
    const Value scaled = (x - mean) / sqrt(VarianceOf(x, over, 0, true) + epsilon);
    const auto updated = [&](Value running, Value now) {
      const Value y = Widened(running) * (1 - momentum) + now * momentum;
      return Narrowed(y, running.type().dtype());
    };
    const Value variance = VarianceOf(x, over, correction, false);
    return {Narrowed(AffineAlong(axis, scaled, in[1], in[2]), t),
            updated(in[3], WithoutAxes(mean, over)), updated(in[4], variance)};
  }
  [[gnu::cold]] static Cases cases() {
    using Op = BatchNormTraining;
    const auto in = [](const std::string& x, const std::string& c) {
      return std::vector<std::string>{x, c, c, c, c + " in 0.1..3"};
    };
    return {{Op{}, in("float[2,3,4,5]", "float[3]")},
            {Op{.epsilon = 1e-2, .momentum = 0.3, .correction = 0}, in("float[7,5]", "float[5]")},
            {Op{.axis = -1}, in("f32[2,17,9]", "f32[9]")},
            {Op{}, in("f32[5,1,1]", "f32[1]")},
            {.op = Op{}, .in = in("f32[8,64,56,56]", "f32[64]"), .bench = true},
            {Op{}, in("f32[2,3,4]", "f32[4]"), "axis 1 has 3 elements, not 4"},
            {Op{}, in("f32[2]", "f32[2]"), "axis 1 is outside rank 1"}};
  }
};
const OpDef& DefOf(const BatchNormTraining*);

}  // namespace forge::ir
