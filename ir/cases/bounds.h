// SPDX-License-Identifier: Apache-2.0
// How far a device's result may lie from the reference; see docs/semantics.md, Comparing.
#pragma once
#include "ir/op/op.h"
#include "ir/type/host_value.h"

namespace forge::ir {

// Compares result `index` of `op` on `in` with the evaluator's. Integers, booleans and what only
// moves or selects must be equal; element-wise ops may differ by units of the last place; what sums
// K terms may differ by 4 u sqrt(K) S and one unit, for both roundings. NaN and infinities must be
// where the reference has them; denormal results may be zero.
//   errors: OutOfRange naming the worst element, both numbers and the bound
absl::Status CompareResult(const AnyOp& op, std::span<const HostValue* const> in,
                           const HostValue& reference, const HostValue& result, size_t index = 0);

}  // namespace forge::ir
