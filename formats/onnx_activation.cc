// SPDX-License-Identifier: Apache-2.0
// Activations that are short formulas of others.
#include <numbers>

#include "formats/onnx_builders.h"
#include "ir/ops/elementwise.h"
#include "ir/scalar_math.h"

namespace forge::formats {
namespace {

using ir::Value;

Value Softplus(Value x) { return max(x, 0.0) + log(exp(-abs(x)) + 1.0); }

// alpha (e^x - 1) below 0.
Value Elu(Value x, double alpha) { return max(x, 0.0) + (exp(min(x, 0.0)) - 1.0) * alpha; }

}  // namespace

ir::Values BuildLeakyRelu(OnnxNode& n) {
  constexpr float kAlpha = 0.01f;  // the specification's default is an f32
  const Value x = n.in(0);
  return {max(x, 0.0) + min(x, 0.0) * n.Float("alpha", kAlpha)};
}

ir::Values BuildPRelu(OnnxNode& n) {
  const Value x = n.in(0);
  return {max(x, 0.0) + min(x, 0.0) * n.in(1)};
}

ir::Values BuildElu(OnnxNode& n) { return {Elu(n.in(0), n.Float("alpha", 1))}; }

ir::Values BuildSelu(OnnxNode& n) {
  const double alpha = n.Float("alpha", 1.67326319217681884765625);
  return {Elu(n.in(0), alpha) * n.Float("gamma", 1.05070102214813232421875)};
}

ir::Values BuildSoftplus(OnnxNode& n) { return {Softplus(n.in(0))}; }

ir::Values BuildSoftsign(OnnxNode& n) {
  const Value x = n.in(0);
  return {x / (abs(x) + 1.0)};
}

ir::Values BuildMish(OnnxNode& n) {
  const Value x = n.in(0);
  return {x * tanh(Softplus(x))};
}

ir::Values BuildGelu(OnnxNode& n) {
  const std::string how = n.String("approximate", "none");
  if (how != "none" && how != "tanh") n.Fail("approximation '{}' is not known", how);
  return n.fn().Add(ir::Gelu{.tanh_form = how == "tanh"}, std::array{n.in(0)});
}

}  // namespace forge::formats
