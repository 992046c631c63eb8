// SPDX-License-Identifier: Apache-2.0
// Layouts of convolutions and of what runs like them.
#pragma once
#include "absl/functional/function_ref.h"
#include "cpu_runtime/kernels/kernel.h"

namespace forge::cpu {

// Channels last where that differs, and dense; each with the second operand packed, then as it is.
// packed: that operand's encoding under a choice of the others; null where packing gains nothing
std::vector<ir::EncodingChoice> ConvolutionChoices(
    const Task& task, const Settings& settings,
    absl::FunctionRef<ir::EncodingRef(const ir::EncodingChoice&)> packed);

}  // namespace forge::cpu
