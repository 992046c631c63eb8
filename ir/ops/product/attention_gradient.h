// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/product/attention.h"

namespace forge::ir {

// The gradients of attention. Its probabilities are computed again, from the sums that it keeps, so
// that kernels store no scores.
struct AttentionGradient {
  double scale = 0, softcap = 0;
  Causal causal = Causal::kNone;
  int64_t window_left = -1, window_right = -1;

  static constexpr OpInfo kInfo{
      .name = "attention_gradient",
      .formula =
          "with p = exp(scores - log_sum) and ds = p * (dy v^T - delta): dq = ds k and dk = ds^T "
          "q, both times the scale and the derivative of the softcap, and dv = p^T dy; dk and dv "
          "are summed over the axes along which k and v are repeated",
      .inputs =
          "q: float[*b, l, e]; k: =q[*c, s, e]; v: =q[*c, s, w]; log_sum: wide(q)[*b, l, "
          "1]; dy: =q[*b, l, w]; delta: wide(q)[*b, l, 1]; mask: float|bool[*m]?",
      .outputs = "dq: =q; dk: =k; dv: =v",
      .source = "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward"};
  static constexpr Field kFields[] = {
      FieldOf<&AttentionGradient::scale>("scale", "As that of attention, like all attributes."),
      FieldOf<&AttentionGradient::softcap>("softcap", "As that of attention."),
      FieldOf<&AttentionGradient::causal>("causal", "As that of attention.",
                                          "none|top_left|bottom_right"),
      FieldOf<&AttentionGradient::window_left>("window_left", "As that of attention."),
      FieldOf<&AttentionGradient::window_right>("window_right", "As that of attention.")};

  // The places of operands.
  enum Operand : uint8_t { kQ, kK, kV, kLogSum, kDy, kDelta, kMask };
  Attention forward() const { return {scale, softcap, causal, window_left, window_right}; }
  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const AttentionGradient*);

}  // namespace forge::ir
