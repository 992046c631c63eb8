// SPDX-License-Identifier: Apache-2.0
// Conversion of tensors to and from plain arrays, for the loops of evaluators.
#pragma once
#include <complex>
#include <concepts>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/type/host_value.h"

namespace forge::ir {

// Return all elements in row-major order, converted as by HostValue::f64.
std::vector<double> Doubles(const HostValue& v);
// Integers and bools, as by HostValue::i64.
std::vector<int64_t> Integers(const HostValue& v);
// As by HostValue::c128.
std::vector<std::complex<double>> Complexes(const HostValue& v);
// Stores one number for each element, as by HostValue::Set and SetC128.
void Store(std::span<const double> from, HostValue& to);
void Store(std::span<const std::complex<double>> from, HostValue& to);

// Products. Integers wrap. Complex numbers follow the formula, so an infinite part may make the
// other NaN, as in PyTorch.
template <std::integral T>
constexpr T Product(T a, T b) {
  return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
inline double Product(double a, double b) { return a * b; }
inline std::complex<double> Product(std::complex<double> a, std::complex<double> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// The lowest and highest value of an integer type in f64, rounded outwards for 64 bits.
std::pair<double, double> RangeOf(DType t);
// Truncate and saturate; NaN gives 0.
int64_t SaturatedI64(double v);
uint64_t SaturatedU64(double v);

// Fails for a complex number as an element of a real type.
absl::Status CheckHolds(DType t, const Number& v);

// Returns row-major strides, in elements.
Index Strides(std::span<const int64_t> shape);
// Returns the strides for reading a tensor of `shape` at indices of `out`, to which it broadcasts:
// one for each axis of `out`, 0 along repeated axes.
Index BroadcastStrides(std::span<const int64_t> shape, std::span<const int64_t> out);

}  // namespace forge::ir
