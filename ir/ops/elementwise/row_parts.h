// SPDX-License-Identifier: Apache-2.0
// Functions that rows of the element-wise table call, and queries of their signatures.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <type_traits>

#include "ir/op/elements.h"
#include "ir/ops/elementwise/elementwise.h"

namespace forge::ir {

// Returns integers in an unsigned type, whose arithmetic wraps.
template <class T>
constexpr auto Wrapping(T x) {
  if constexpr (std::is_same_v<T, int64_t>)
    return static_cast<uint64_t>(x);
  else
    return x;
}
// Quotients. Complex ones use Smith's method, which avoids premature overflow and underflow (R. L.
// Smith, "Algorithm 116: Complex division", 1962).
std::complex<double> Quotient(std::complex<double> a, std::complex<double> b);
double Quotient(double a, double b);
int64_t Quotient(int64_t a, int64_t b);
uint64_t Quotient(uint64_t a, uint64_t b);
// 1 / (1 + e^-x), without overflow on the way.
double SigmoidOf(double x);
std::complex<double> SigmoidOf(std::complex<double> x);
// a - trunc(a / b) b; a for b = 0 of integers.
double TruncatedRemainder(double a, double b);
int64_t TruncatedRemainder(int64_t a, int64_t b);
uint64_t TruncatedRemainder(uint64_t a, uint64_t b);
// floor(a / b), of integers -1 for b = 0.
double FloorOfQuotient(double a, double b);
int64_t FloorOfQuotient(int64_t a, int64_t b);
uint64_t FloorOfQuotient(uint64_t a, uint64_t b);
// a^b; of integers wrapping, for b < 0 1 / a^-b truncated, and 0 for a = 0.
double PowerOf(double a, double b);
int64_t PowerOf(int64_t a, int64_t b);
uint64_t PowerOf(uint64_t a, uint64_t b);
// The derivative of log |gamma(x)|, and the derivative of that of the given order, which is above
// 0.
double DigammaOf(double x);
double PolygammaOf(int64_t order, double x);
// Converts to T; integers saturate.
template <class T>
T Saturated(double v);
template <>
double Saturated<double>(double v);
template <>
int64_t Saturated<int64_t>(double v);
template <>
uint64_t Saturated<uint64_t>(double v);
absl::Status CheckNumber(DType t);  // fails unless bool or a number of 8 bits or more
absl::Status CheckCast(DType to);   // also accepts 8-bit floats
absl::Status CheckBounds(double low, double high, const Type& x);  // clamp on integers
// Fails with "beta 0 is not above 0".
absl::Status CheckAbove(std::string_view attribute, double v, double least);
absl::Status EvaluateCast(Eval& e);

// Return the dtype word of operand k of a signature. ResolvedWord follows references: for "a:
// number; b: =a" both give number.
constexpr std::string_view OperandWord(std::string_view signature, int k) {
  for (; k > 0; --k) signature.remove_prefix(signature.find(';') + 2);
  signature = signature.substr(signature.find(':') + 2);
  return signature.substr(0, signature.find(';'));
}
constexpr std::string_view ResolvedWord(std::string_view signature, int k) {
  const std::string_view word = OperandWord(signature, k);
  if (word[0] != '=') return word;
  for (int i = 0; i < k; ++i) {
    std::string_view rest = signature;
    for (int j = i; j > 0; --j) rest.remove_prefix(rest.find(';') + 2);
    if (rest.substr(0, rest.find(':')) == word.substr(1)) return ResolvedWord(signature, i);
  }
  return {};
}
// True when `choice` is one of the alternatives of a dtype word such as "number|bool".
constexpr bool Offers(std::string_view word, std::string_view choice) {
  for (size_t at = 0; at < word.size();) {
    const size_t end = std::min(word.find('|', at), word.size());
    if (word.substr(at, end - at) == choice) return true;
    at = end + 1;
  }
  return false;
}
// True when the last operand, which determines the type of the computation, may have this type.
constexpr bool Takes(const ScalarInfo& info, DType domain) {
  const std::string_view word = ResolvedWord(info.inputs, info.arity() - 1);
  if (domain == DType::kI32 && Offers(word, "i32")) return true;
  if (domain == DType::kU32 && Offers(word, "u32")) return true;
  if (Has(kComplexTypes, domain)) return Offers(word, "complex") || Offers(word, "number");
  if (domain == DType::kBool) return Offers(word, "bool");
  if (Offers(word, "real") || Offers(word, "number")) return true;
  return Offers(word, Has(kFloatTypes, domain) ? "float" : "int");
}
// True when operand k is bool for every domain.
constexpr bool IsTruth(const ScalarInfo& info, int k) {
  return ResolvedWord(info.inputs, k) == "bool";
}
// True when the result type is an attribute, independent of the operand's.
constexpr bool Converts(const ScalarInfo& info) { return info.result == ResultType::kAttribute; }

}  // namespace forge::ir
