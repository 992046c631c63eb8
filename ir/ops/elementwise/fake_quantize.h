// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

// What a rounding, whose derivative is zero, counts as in gradients: a straight-through estimator.
enum class StraightThrough : uint8_t { kClipped, kIdentity, kTanh, kHardTanh };

// Operands of a quantised model, rounded while it is trained.
struct FakeQuantize {
  int64_t low = -127, high = 127;
  StraightThrough straight_through = StraightThrough::kClipped;
  double scale_gradient = 1;

  static constexpr OpInfo kInfo{
      .name = "fake_quantize",
      .formula =
          "y = (clamp(round(x / scale) + z, low, high) - z) * scale; z is zero, rounded and "
          "between low and high",
      .inputs = "x: float[*d]; scale: =x[*s]; zero: =x[*z]?",
      .outputs = "y: =x",
      .source =
          "torch.fake_quantize_per_tensor_affine, torch.fake_quantize_per_channel_affine; "
          "learned step size quantisation (Esser et al. 2020)"};
  static constexpr Field kFields[] = {
      FieldOf<&FakeQuantize::low>("low", "The least step."),
      FieldOf<&FakeQuantize::high>("high", "The greatest step."),
      FieldOf<&FakeQuantize::straight_through>("straight_through",
                                               "The gradient of x: dy where no bound is passed, "
                                               "else 0; dy; dy * (1 - tanh(x / scale)^2); "
                                               "dy * max(0, 1 - |x / (high * scale)|).",
                                               "clipped|identity|tanh|hard_tanh"),
      FieldOf<&FakeQuantize::scale_gradient>(
          "scale_gradient",
          "Factor of the gradients of scale and zero, in the published method "
          "1 / sqrt(elements * high).")};

  // The scale, which is above zero, and the zero point broadcast to x.
  Values decompose(Function& f, ValueSpan in) const;
  Values gradient(const GradArgs& g) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const FakeQuantize*);

}  // namespace forge::ir
