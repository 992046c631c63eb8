// SPDX-License-Identifier: Apache-2.0
// Activations that are short formulas of others.
#include <numbers>

#include "formats/onnx/builders/builders.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"

namespace forge::formats {
namespace {

using ir::Value;

// Formulas of several steps take f16 and bf16 as f32, and round once.
template <class Formula>
ir::Values Rounded(Value x, Formula formula) {
  return {Narrowed(formula(Widened(x)), x.type().dtype())};
}

Value Softplus(Value x) { return max(x, 0.0) + log1p(exp(-abs(x))); }

// alpha (e^x - 1) below 0
Value Elu(Value x, double alpha) { return max(x, 0.0) + expm1(min(x, 0.0)) * alpha; }

}  // namespace

ir::Values BuildLeakyRelu(OnnxNode& n) {
  constexpr float kAlpha = 0.01f;  // the specification's default is an f32
  const double alpha = n.Float("alpha", kAlpha);
  return Rounded(n.in(0), [&](Value x) {
    const Value positive = max(x, 0.0);
    return positive + min(x, 0.0) * alpha;
  });
}

ir::Values BuildPRelu(OnnxNode& n) {
  const Value slope = Widened(n.in(1));
  return Rounded(n.in(0), [&](Value x) {
    const Value positive = max(x, 0.0);
    return positive + min(x, 0.0) * slope;
  });
}

ir::Values BuildElu(OnnxNode& n) {
  const double alpha = n.Float("alpha", 1);
  return Rounded(n.in(0), [&](Value x) { return Elu(x, alpha); });
}

ir::Values BuildSelu(OnnxNode& n) {
  const double alpha = n.Float("alpha", 1.67326319217681884765625);
  const double gamma = n.Float("gamma", 1.05070102214813232421875);
  return Rounded(n.in(0), [&](Value x) { return Elu(x, alpha) * gamma; });
}

ir::Values BuildSoftplus(OnnxNode& n) { return Rounded(n.in(0), Softplus); }

ir::Values BuildSoftsign(OnnxNode& n) {
  return Rounded(n.in(0), [](Value x) { return x / (abs(x) + 1.0); });
}

ir::Values BuildMish(OnnxNode& n) {
  return Rounded(n.in(0), [](Value x) { return x * tanh(Softplus(x)); });
}

ir::Values BuildGelu(OnnxNode& n) {
  const std::string how = n.String("approximate", "none");
  if (how != "none" && how != "tanh") n.Fail("unknown approximation '{}'", how);
  return n.fn().Add(ir::Gelu{.tanh_form = how == "tanh"}, std::array{n.in(0)});
}

}  // namespace forge::formats
