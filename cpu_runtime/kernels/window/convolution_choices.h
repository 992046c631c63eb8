// SPDX-License-Identifier: Apache-2.0
// Layouts of convolutions and of ops with the same layouts.
#pragma once
#include "absl/functional/function_ref.h"
#include "cpu_runtime/kernels/kernel.h"

namespace forge::cpu {

// Returns the encoding choices: channels last, where that differs from dense, and dense; each first
// with the second operand packed, then unpacked.
//   packed: returns the encoding of the second operand, given a choice for the others; null where
//   packing has no benefit
std::vector<ir::EncodingChoice> ConvolutionChoices(
    const Task& task, const Settings& settings,
    absl::FunctionRef<ir::EncodingRef(const ir::EncodingChoice&)> packed);

}  // namespace forge::cpu
