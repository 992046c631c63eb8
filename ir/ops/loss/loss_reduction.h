// SPDX-License-Identifier: Apache-2.0
// The attribute `reduction` of losses.
#pragma once
#include "ir/ops/decomposing.h"

namespace forge::ir {

enum class LossReduction : uint8_t { kNone, kMean, kSum, kBatchMean };

inline constexpr std::string_view kLossReductions = "none|mean|sum";
inline constexpr std::string_view kLossReductionDoc = "All losses, their mean, or their sum.";

// Returns the losses, or their mean or sum as a scalar, in element type `to`. The batch mean is the
// sum divided by the extent of axis 0; the function fails if there is none.
Value Reduced(LossReduction how, Value losses, DType to);
// The same where the mean is weighted: the sum divided by that of `weights`.
Value ReducedByWeight(LossReduction how, Value losses, Value weights, DType to);

}  // namespace forge::ir
