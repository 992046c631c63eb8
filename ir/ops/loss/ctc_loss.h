// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/loss/loss_reduction.h"

namespace forge::ir {

struct CtcLoss {
  LossReduction reduction = LossReduction::kMean;
  int64_t blank = 0;
  bool zero_infinity = false;

  static constexpr OpInfo kInfo{
      .name = "ctc_loss",
      .formula =
          "y = -log of the sum over all alignments of the target, with blanks and repeats, "
          "of their probability, reduced; a mean divides by the length of each target",
      .inputs =
          "x: float[s, n, c]; target: i32|i64[n, l]; x_lengths: i32|i64[n]; "
          "target_lengths: =x_lengths[n]",
      .outputs = "y: =x[*r]",
      .source =
          "torch.nn.functional.ctc_loss; Graves et al., \"Connectionist temporal "
          "classification\", 2006"};
  static constexpr Field kFields[] = {
      FieldOf<&CtcLoss::reduction>("reduction", kLossReductionDoc, kLossReductions),
      FieldOf<&CtcLoss::blank>("blank", "The class that stands for none."),
      FieldOf<&CtcLoss::zero_infinity>("zero_infinity",
                                       "The loss of a target that has no alignment is 0, not "
                                       "infinite; either has no gradient.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  // One step after another; their number must be known.
  Values decompose(Function& f, ValueSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const CtcLoss*);

}  // namespace forge::ir
