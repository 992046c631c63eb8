// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/op.h"

namespace forge::ir {

struct Attention {
  double scale = 0;

  static constexpr OpInfo kInfo{
      .name = "attention",
      .formula =
          "y = softmax(scale * q k^T, masked) v; a row that is masked altogether gives zeros",
      .inputs = "q: float[*b, l, e]; k: =q[*c, s, f]; v: =q[*d, t, w]; mask: float|bool[*m]?",
      .outputs = "y: =q[*r, o, p]",
      .source = "ONNX Attention-23; torch.nn.functional.scaled_dot_product_attention"};
  static constexpr Field kFields[] = {
      FieldOf<&Attention::scale>("scale",
                                 "Of the scores; 0 means 1 / sqrt(e). A float mask is "
                                 "added to them, a bool mask is true where they count.")};

  // Leading axes broadcast; the mask broadcasts to the scores [*r, l, s].
  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;
  static constexpr Pending gradient{};
  absl::Status evaluate(Eval& e) const;
  absl::Status magnitude(Eval& e) const;
  Cost cost(TypeSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Attention*);

}  // namespace forge::ir
