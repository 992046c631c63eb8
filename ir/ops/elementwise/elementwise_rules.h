// SPDX-License-Identifier: Apache-2.0
// The rules that all element-wise ops share; see elementwise.cc.
#pragma once
#include "ir/ops/elementwise/scalar_def.h"

namespace forge::ir {

// Operands broadcast; ScalarInfo determines the result type. errors: InvalidArgument (shapes; those
// of the row's check)
absl::StatusOr<Types> InferElementWise(const AnyOp& op, TypeSpan in);
// Evaluates the reference for each element, in f64 or exact integers.
absl::Status EvaluateElementWise(const AnyOp& op, Eval& e);
// The gradient of the row, summed over the axes along which an operand was broadcast.
Values ElementWiseGradient(const AnyOp& op, const GradArgs& g);
// Returns cases for each sample of the attributes: broadcast shapes, edge values, an empty tensor,
// refusals, and one of real size.
Cases ElementWiseCases(const OpDef& def, std::span<const AnyOp> samples);

}  // namespace forge::ir
