// SPDX-License-Identifier: Apache-2.0
// Products in f16 or bf16 beside sums, losses and weights in f32.
#pragma once
#include "ir/graph/copier.h"

namespace forge::ir {

// Returns what products are computed in: kF32 for "exact", kF16 or kBF16.
//   errors: InvalidArgument (lists the names)
absl::StatusOr<DType> ParsePrecision(std::string_view name);

// Copies a node. If it is a matrix product or a convolution of f32, its operands are rounded to
// `precision`, and its results are f32 again.
//   precision: kF32 (copies it as it is), kF16 or kBF16
void CopyAtPrecision(const Node& node, DType precision, Copier& copy, Function& out);

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
