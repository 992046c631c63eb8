// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/graph/module.h"

namespace forge::ir {

// The factor of a loss that keeps its gradients above the least number of f16. It grows while the
// gradients are finite, and shrinks when they are not.
//   source: torch.amp.GradScaler, with its default numbers
class LossScale {
 public:
  // Adds the states "loss_scale" and "loss_scale.steps".
  explicit LossScale(Module& m);
  Value Of(Function& f) const { return f.Read(scale_); }
  // Stores the factor of the next step.
  //   finite: bool scalar, whether all gradients of this step are
  void Update(Function& f, Value finite) const;

 private:
  Variable* scale_;
  Variable* steps_;  // since it changed
};

}  // namespace forge::ir
