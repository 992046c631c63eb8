// SPDX-License-Identifier: Apache-2.0
// Literals as the bits of an element, zero-extended to 64 bits.
#pragma once
#include <bit>
#include <optional>
#include <span>

#include "base/number.h"
#include "codegen/kernel/kernel_ir.h"

namespace forge::codegen {

constexpr bool IsFloat(DType t) { return Has(kFloatTypes, t); }
constexpr bool IsSigned(DType t) {
  return Has(kSignedTypes | Bit(DType::kI2) | Bit(DType::kI4), t);
}
constexpr bool IsInt(DType t) { return Has(kIntTypes, t); }

// Converts to the bits of `t`: floats round half to even; integers truncate and saturate, NaN gives
// 0; bool is v != 0.
uint64_t ToBits(DType t, double v);
uint64_t ToBits(DType t, const Number& v);
double FloatOf(DType t, uint64_t bits);     // any type; 64-bit integers round
int64_t IntegerOf(DType t, uint64_t bits);  // integers and bool, sign-extended
// The lowest finite number of f32 or f64.
double LowestOf(DType t);
uint64_t Masked(DType t, uint64_t bits);  // the lowest BitWidth(t) bits

// Returns log2 of a power of two; -1 otherwise.
constexpr int Log2(std::optional<uint64_t> bits) {
  return bits && std::has_single_bit(*bits) ? std::countr_zero(*bits) : -1;
}

// Evaluates one element of a pure instruction on literals. All operands have type `arg`, except the
// condition of Select and shift amounts. Returns nullopt where the result is undefined or not worth
// folding.
struct Folding {
  Code code;
  DType result, arg;
};
std::optional<uint64_t> FoldLiterals(const Folding& f, std::span<const uint64_t> bits);
// FoldLiterals of one instruction, for many elements.
class Folder {
 public:
  explicit Folder(const Folding& f);
  std::optional<uint64_t> operator()(std::span<const uint64_t> bits) const {
    return fold_(f_, bits);
  }

 private:
  Folding f_;
  std::optional<uint64_t> (*fold_)(const Folding& f, std::span<const uint64_t> bits);
};

// The type in which kernels compute `t`: f32 for narrow floats, i32 or u32 for narrow integers.
DType ComputeType(DType t);

}  // namespace forge::codegen
