// SPDX-License-Identifier: Apache-2.0
// What all element-wise ops share: the rules behind elementwise_family.h.
#pragma once
#include "ir/ops/elementwise/scalar_def.h"

namespace forge::ir {

// Operands broadcast; the result type is as ScalarInfo says.
//   errors: InvalidArgument (shapes, or what the row's check refuses)
absl::StatusOr<Types> InferElementWise(const AnyOp& op, TypeSpan in);
// The reference on every element: f64, or exact integers.
absl::Status EvaluateElementWise(const AnyOp& op, Eval& e);
// The row's gradient, summed over the axes along which an operand was broadcast.
Values ElementWiseGradient(const AnyOp& op, const GradArgs& g);
// Shapes that broadcast, edge values, an empty tensor, refusals, and one of real size, for each
// sample of the attributes.
Cases ElementWiseCases(const OpDef& def, std::span<const AnyOp> samples);

}  // namespace forge::ir
