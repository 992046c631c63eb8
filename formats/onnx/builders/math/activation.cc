// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "formats/onnx/builders/families.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/prelu.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/reshape.h"

namespace forge::formats {
namespace {

ir::Values Of(OnnxNode& n, const ir::AnyOp& op) { return n.fn().Add(op, std::array{n.in(0)}); }

ir::Values BuildLeakyRelu(OnnxNode& n) {
  constexpr float kAlpha = 0.01f;  // the specification's default is an f32
  return Of(n, ir::LeakyRelu{.slope = n.Float("alpha", kAlpha)});
}

// Until version 7 a slope of several elements had one for each channel.
ir::Values BuildPRelu(OnnxNode& n) {
  ir::Value slope = n.in(1);
  const ir::Type x = n.type(0);
  if (n.since() < 7 && x.is_tensor() && slope.type().is_tensor() && slope.type().rank() == 1) {
    ir::Dims shape(static_cast<size_t>(std::max<int64_t>(1, x.rank() - 1)), 1);
    shape[0] = slope.type().shape()[0];
    if (shape[0] != ir::Dim(1)) slope = n.fn()(ir::Reshape{std::move(shape)}, {slope});
  }
  if (n.since() < 6) n.Ignore("consumed_inputs");
  return {n.fn()(ir::PRelu{}, {n.in(0), slope})};
}

ir::Values BuildElu(OnnxNode& n) { return Of(n, ir::Elu{.alpha = n.Float("alpha", 1)}); }
ir::Values BuildCelu(OnnxNode& n) { return Of(n, ir::Celu{.alpha = n.Float("alpha", 1)}); }

ir::Values BuildSelu(OnnxNode& n) {
  const double alpha = n.Float("alpha", 1.67326319217681884765625);
  return Of(n, ir::Selu{.alpha = alpha, .gamma = n.Float("gamma", 1.05070102214813232421875)});
}

ir::Values BuildSoftplus(OnnxNode& n) {
  return Of(n, ir::Softplus{.threshold = std::numeric_limits<double>::infinity()});
}

ir::Values BuildSoftsign(OnnxNode& n) { return Of(n, ir::Softsign{}); }
ir::Values BuildMish(OnnxNode& n) { return Of(n, ir::Mish{}); }

ir::Values BuildGelu(OnnxNode& n) {
  const std::string how = n.String("approximate", "none");
  if (how != "none" && how != "tanh") n.Fail("unknown approximation '{}'", how);
  return Of(n, ir::Gelu{.tanh_form = how == "tanh"});
}

// x sigmoid(alpha x)
ir::Value Swished(OnnxNode& n, ir::Value x, double alpha) {
  if (alpha == 1) return n.fn()(ir::Silu{}, {x});
  return x * n.fn()(ir::Sigmoid{}, {x * alpha});
}

ir::Values BuildSwish(OnnxNode& n) {
  const ir::Value y = Swished(n, ir::Widened(n.in(0)), n.Float("alpha", 1));
  return {ir::Narrowed(y, n.type(0).dtype())};
}

ir::Values BuildSwiGlu(OnnxNode& n) {
  const ir::Value y = Swished(n, ir::Widened(n.in(0)), n.Float("alpha", 1));
  return {ir::Narrowed(y * ir::Widened(n.in(1)), n.type(0).dtype())};
}

ir::Values BuildShrink(OnnxNode& n) {
  const double lambda = n.Float("lambd", 0.5);
  return Of(n, ir::Shrink{.lambda = lambda, .bias = n.Float("bias", 0)});
}

ir::Values BuildThresholdedRelu(OnnxNode& n) {
  return Of(n, ir::Threshold{.threshold = n.Float("alpha", 1)});
}

constexpr OnnxOp kActivationOps[] = {
    {"", "Celu", 12, 1, 1, BuildCelu},
    {"", "Elu", 1, 1, 1, BuildElu},
    {"", "Gelu", 20, 1, 1, BuildGelu},
    {"", "LeakyRelu", 1, 1, 1, BuildLeakyRelu},
    {"", "Mish", 18, 1, 1, BuildMish},
    {"", "PRelu", 1, 2, 2, BuildPRelu},
    {"", "PRelu", 6, 2, 2, BuildPRelu},
    {"", "PRelu", 7, 2, 2, BuildPRelu},
    {"", "Selu", 1, 1, 1, BuildSelu},
    {"", "Shrink", 9, 1, 1, BuildShrink},
    {"", "Softplus", 1, 1, 1, BuildSoftplus},
    {"", "Softsign", 1, 1, 1, BuildSoftsign},
    {"", "SwiGLU", 28, 2, 2, BuildSwiGlu},
    {"", "Swish", 24, 1, 1, BuildSwish},
    {"", "ThresholdedRelu", 10, 1, 1, BuildThresholdedRelu},
};

}  // namespace

std::span<const OnnxOp> ActivationOps() { return kActivationOps; }

}  // namespace forge::formats
