// SPDX-License-Identifier: Apache-2.0
// Whole tensors as plain arrays, for the loops of evaluators.
#pragma once
#include <span>
#include <vector>

#include "ir/type/host_value.h"

namespace forge::ir {

// All elements in row-major order, converted as HostValue::f64 does.
std::vector<double> Doubles(const HostValue& v);
// Integers and bools, converted as HostValue::i64 does.
std::vector<int64_t> Integers(const HostValue& v);
// Stores `from`, one number for each element, as HostValue::Set does.
void Store(std::span<const double> from, HostValue& to);

// Least and greatest value of an integer type in f64; those of 64 bits are rounded outwards.
std::pair<double, double> RangeOf(DType t);
// `v` truncated, in T; NaN gives 0.
int64_t SaturatedI64(double v);
uint64_t SaturatedU64(double v);

// Refuses a complex number for elements of a real type.
absl::Status CheckHolds(DType t, const Number& v);

// Row-major strides in elements.
Index Strides(std::span<const int64_t> shape);
// Strides of a tensor of `shape` read at the indices of `out`, to which it broadcasts: 0 along
// repeated axes, one for each axis of `out`.
Index BroadcastStrides(std::span<const int64_t> shape, std::span<const int64_t> out);

}  // namespace forge::ir
