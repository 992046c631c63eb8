// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

enum class Causal : uint8_t { kNone, kTopLeft, kBottomRight };

struct Attention {
  double scale = 0, softcap = 0;
  Causal causal = Causal::kNone;
  int64_t window_left = -1, window_right = -1;
  bool log_sums = false;

  static constexpr OpInfo kInfo{
      .name = "attention",
      .formula =
          "y = softmax(softcap(scale * q k^T), masked) v; a row that is masked altogether gives "
          "zeros",
      .inputs = "q: float[*b, l, e]; k: =q[*c, s, f]; v: =q[*d, t, w]; mask: float|bool[*m]?",
      .outputs = "y: =q[*r, o, p]; log_sum: wide(q)[*r, o, t]?",
      .source = "ONNX Attention-23; torch.nn.functional.scaled_dot_product_attention",
      .saved = "log_sums",
      .product = true,
      .weighed = 2};
  static constexpr Field kFields[] = {
      FieldOf<&Attention::scale>("scale",
                                 "Of the scores; 0 means 1 / sqrt(e). A float mask (q's type, or "
                                 "f32 for f16 and bf16) is added to them; a bool mask is true "
                                 "where they count."),
      FieldOf<&Attention::softcap>("softcap",
                                   "c of c tanh(x / c), which scores become first; 0: none."),
      FieldOf<&Attention::causal>(
          "causal",
          "Keys after a row's own do not count; the first rows, or the last "
          "ones, have each other's places.",
          "none|top_left|bottom_right"),
      FieldOf<&Attention::window_left>("window_left",
                                       "Keys before a row's own that count; -1: all."),
      FieldOf<&Attention::window_right>("window_right", "The same after it."),
      FieldOf<&Attention::log_sums>("log_sums",
                                    "Adds the logarithm of the sum of each row's exponentials, "
                                    "infinity for a row that is masked altogether.")};

  // What the scores are multiplied by, where a key has `head` elements.
  double ScaleFor(int64_t head) const;
  // Row i sees keys from i + first to i + last; nullopt: without that end.
  struct Band {
    std::optional<Dim> first, last;
  };
  Band BandOf(const Dim& rows, const Dim& keys) const;
  // Leading axes broadcast; the mask broadcasts to the scores [*r, l, s].
  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;
  Values gradient(const GradArgs& g) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Attention*);

}  // namespace forge::ir
