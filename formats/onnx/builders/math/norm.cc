// SPDX-License-Identifier: Apache-2.0
// Norms by their formula.
#include "formats/onnx/builders/families.h"
#include "formats/onnx/builders/steps.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/norm/local_response_norm.h"
#include "ir/ops/reduction/variance.h"
#include "ir/ops/reduction/vector_norm.h"

namespace forge::formats {
namespace {

std::vector<int64_t> SpatialAxes(OnnxNode& n) {
  std::vector<int64_t> axes;
  const ir::Type& type = n.type(0);
  if (!type.is_tensor() || type.rank() < 3)
    n.Fail("{} has no spatial axes", type.ToText());
  else
    for (int64_t axis = 2; axis < type.rank(); ++axis) axes.push_back(axis);
  return axes;
}

ir::Values BuildLrn(OnnxNode& n) {
  const int64_t size = n.Int("size", 1);
  const ir::LocalResponseNorm op{.size = size,
                                 .before = (size - 1) / 2,
                                 .alpha = n.Float("alpha", 1e-4f),
                                 .beta = n.Float("beta", 0.75),
                                 .bias = n.Float("bias", 1)};
  return {n.fn()(op, {n.in(0)})};
}

// A vector of zeros stays.
ir::Values BuildLpNormalization(OnnxNode& n) {
  const int64_t p = n.Int("p", 2), axis = n.Int("axis", -1);
  if (p != 1 && p != 2) n.Fail("attribute 'p' is {}", p);
  const ir::Value x = ir::Widened(n.in(0));
  const ir::Value norm = n.fn()(ir::VectorNorm{.p = static_cast<double>(p), .axes = {axis}}, {x});
  const ir::Value y = x / ir::select(norm > 0.0, norm, ir::select(norm < 1.0, 1.0, norm));
  return {ir::Narrowed(y, n.type(0).dtype())};
}

ir::Values BuildMeanVarianceNormalization(OnnxNode& n) {
  constexpr double kLeast = 1e-9;  // added to the deviation, by the specification
  const std::vector<int64_t> axes = n.Ints("axes", {0, 2, 3});
  if (!HasRank(n, 0, 1, 64)) return {};
  const ir::Value x = ir::Widened(n.in(0));
  const ir::Value d = x - ir::ReduceAxes(ir::ReduceKind::kMean, x, axes);
  if (!n.fn().status().ok()) return {d};
  const ir::Value deviation = ir::sqrt(ir::VarianceOf(x, axes, 0, true));
  return {ir::Narrowed(d / (deviation + kLeast), n.type(0).dtype())};
}

ir::Values BuildGlobalLpPool(OnnxNode& n) {
  const double p = n.since() < 2 ? n.Float("p", 2) : static_cast<double>(n.Int("p", 2));
  const std::vector<int64_t> axes = SpatialAxes(n);
  if (axes.empty()) return {};
  return {n.fn()(ir::VectorNorm{.p = p, .axes = axes}, {n.in(0)})};
}

constexpr OnnxOp kNormOps[] = {
    {"", "GlobalLpPool", 1, 1, 1, BuildGlobalLpPool},
    {"", "GlobalLpPool", 2, 1, 1, BuildGlobalLpPool},
    {"", "LRN", 1, 1, 1, BuildLrn},
    {"", "LpNormalization", 1, 1, 1, BuildLpNormalization},
    {"", "MeanVarianceNormalization", 9, 1, 1, BuildMeanVarianceNormalization},
};

}  // namespace

std::span<const OnnxOp> NormOps() { return kNormOps; }

}  // namespace forge::formats
