// SPDX-License-Identifier: Apache-2.0
// Error bounds of results relative to the reference; see docs/semantics.md, Comparing.
#pragma once
#include "ir/op/op.h"
#include "ir/type/host_value.h"

namespace forge::ir {

// Compares result `index` of an op with that of its evaluator. Integers, booleans and results of
// movement and selection must be equal; element-wise ops have a bound in units of the last place;
// sums of K terms may differ by 4 u sqrt(K) S and one unit in the last place. NaN and infinities
// must be at the same places; denormal results may be zero.
//   errors: OutOfRange naming the worst element, both numbers and the bound
absl::Status CompareResult(const AnyOp& op, std::span<const HostValue* const> in,
                           const HostValue& reference, const HostValue& result, size_t index = 0);

}  // namespace forge::ir
