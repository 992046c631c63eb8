// SPDX-License-Identifier: Apache-2.0
// Whole tensors as plain arrays, for the loops of evaluators.
#pragma once
#include <complex>
#include <concepts>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/type/host_value.h"

namespace forge::ir {

// All elements in row-major order, converted as HostValue::f64 does.
std::vector<double> Doubles(const HostValue& v);
// Integers and bools, converted as HostValue::i64 does.
std::vector<int64_t> Integers(const HostValue& v);
// As HostValue::c128 does.
std::vector<std::complex<double>> Complexes(const HostValue& v);
// Stores `from`, one number for each element, as HostValue::Set and SetC128 do.
void Store(std::span<const double> from, HostValue& to);
void Store(std::span<const std::complex<double>> from, HostValue& to);

// Integers wrap. Complex numbers by the formula: an infinite part may make the other NaN, as in
// PyTorch.
template <std::integral T>
constexpr T Product(T a, T b) {
  return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
inline double Product(double a, double b) { return a * b; }
inline std::complex<double> Product(std::complex<double> a, std::complex<double> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

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
