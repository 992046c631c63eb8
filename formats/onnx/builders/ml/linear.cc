// SPDX-License-Identifier: Apache-2.0
// Linear models.
#include "formats/onnx/builders/families.h"
#include "formats/onnx/builders/ml/scores.h"
#include "formats/onnx/builders/steps.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/product/matmul.h"

namespace forge::formats {
namespace {

// x [rows, features] times the coefficients, [rows, targets].
ir::Value LinearScores(OnnxNode& n, int64_t targets, const std::vector<double>& add) {
  const std::vector<double> coefficients = n.Floats("coefficients");
  const auto size = static_cast<int64_t>(coefficients.size());
  if (targets < 1 || size == 0 || size % targets != 0)
    n.Fail("{} coefficients for {} targets", size, targets);
  const ir::Value x = FeaturesOf(n, 0);
  if (!n.status().ok()) return n.in(0);
  const ir::Value w = NumbersConstant(n, DType::kF32, coefficients, {targets, size / targets});
  const ir::Value y = n.fn()(ir::MatMul{.transpose_b = true}, {x, w});
  return add.empty() ? y : y + NumbersConstant(n, DType::kF32, add);
}

ir::Values BuildLinearRegressor(OnnxNode& n) {
  const std::string post = PostTransform(n);
  return {PostTransformed(n, post, LinearScores(n, n.Int("targets", 1), n.Floats("intercepts")))};
}

// One score for two classes is that of the second.
ir::Values BuildLinearClassifier(OnnxNode& n) {
  n.Ignore("multi_class");  // how it was trained
  const ClassLabels labels = LabelsOf(n, "classlabels_ints");
  const std::vector<double> add = n.Floats("intercepts");
  const bool in_two = labels.count() == 2 && add.size() == 1;
  const ir::Value scores = LinearScores(n, in_two ? 1 : labels.count(), add);
  if (!IsOfRank(n, scores, 2)) return {};
  if (!in_two) return Classified(n, labels, scores);
  return ClassifiedInTwo(n, labels, scores, {.threshold = 0, .sum = 1});  // as in onnxruntime
}

constexpr OnnxOp kLinearOps[] = {
    {kMl, "LinearClassifier", 1, 1, 1, BuildLinearClassifier},
    {kMl, "LinearRegressor", 1, 1, 1, BuildLinearRegressor},
};

}  // namespace

std::span<const OnnxOp> LinearOps() { return kLinearOps; }

}  // namespace forge::formats
