// SPDX-License-Identifier: Apache-2.0
#include "codegen/kernel/literal.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/narrow_float.h"

namespace forge::codegen {
namespace {

uint64_t SaturatedBits(DType t, double v) {
  if (std::isnan(v)) return 0;
  const int width = BitWidth(t);
  const double high = std::ldexp(1.0, IsSigned(t) ? width - 1 : width);  // the first beyond
  const double low = IsSigned(t) ? -high : 0;
  if (v >= high) return Masked(t, IsSigned(t) ? ~uint64_t{0} >> (65 - width) : ~uint64_t{0});
  if (v <= low) return Masked(t, IsSigned(t) ? uint64_t{1} << (width - 1) : 0);
  return Masked(t,
                v < 0 ? static_cast<uint64_t>(static_cast<int64_t>(v)) : static_cast<uint64_t>(v));
}

// Columns of what instructions make of literals, by what the operands are; nullptr: not worth it.
// Comparisons give 1 or 0.
template <class F>
constexpr CodeTable<F (*)(F a, F b, F c)> kFloatFolds = {
    {Code::kAdd, [](F a, F b, F) { return a + b; }},
    {Code::kSub, [](F a, F b, F) { return a - b; }},
    {Code::kMul, [](F a, F b, F) { return a * b; }},
    {Code::kDiv, [](F a, F b, F) { return a / b; }},
    {Code::kMin, [](F a, F b, F) { return std::isnan(a) || a <= b ? a : b; }},
    {Code::kMax, [](F a, F b, F) { return std::isnan(a) || a >= b ? a : b; }},
    {Code::kFma, [](F a, F b, F c) { return std::fma(a, b, c); }},
    {Code::kEq, [](F a, F b, F) { return F(a == b); }},
    {Code::kLt, [](F a, F b, F) { return F(a < b); }},
    {Code::kLe, [](F a, F b, F) { return F(a <= b); }},
    {Code::kNeg, [](F a, F, F) { return -a; }},
    {Code::kAbs, [](F a, F, F) { return std::fabs(a); }},
    {Code::kSqrt, [](F a, F, F) { return std::sqrt(a); }},
    {Code::kRsqrt, [](F a, F, F) { return 1 / std::sqrt(a); }},
    {Code::kFloor, [](F a, F, F) { return std::floor(a); }},
    {Code::kRoundEven, [](F a, F, F) { return std::nearbyint(a); }},
};

// Of elements extended to 64 bits, where the sign matters.
template <class T>
constexpr CodeTable<T (*)(T a, T b)> kIntegerFolds = {
    {Code::kDiv, [](T a, T b) { return a / b; }},
    {Code::kRem, [](T a, T b) { return a % b; }},
    {Code::kMin, [](T a, T b) { return std::min(a, b); }},
    {Code::kMax, [](T a, T b) { return std::max(a, b); }},
    {Code::kShr, [](T a, T b) { return a >> b; }},
    {Code::kMulHigh, [](T a, T b) { return a * b >> 32; }},  // of 32 bits
    {Code::kLt, [](T a, T b) { return T{a < b}; }},
    {Code::kLe, [](T a, T b) { return T{a <= b}; }},
    // Wraps.
    {Code::kAbs, [](T a, T) { return std::cmp_less(a, 0) ? T(-static_cast<uint64_t>(a)) : a; }},
};

// What does not depend on the sign; also bool, with one bit.
constexpr CodeTable<uint64_t (*)(uint64_t a, uint64_t b)> kBitFolds = {
    {Code::kAdd, [](uint64_t a, uint64_t b) { return a + b; }},
    {Code::kSub, [](uint64_t a, uint64_t b) { return a - b; }},
    {Code::kMul, [](uint64_t a, uint64_t b) { return a * b; }},
    {Code::kAnd, [](uint64_t a, uint64_t b) { return a & b; }},
    {Code::kOr, [](uint64_t a, uint64_t b) { return a | b; }},
    {Code::kXor, [](uint64_t a, uint64_t b) { return a ^ b; }},
    {Code::kEq, [](uint64_t a, uint64_t b) { return uint64_t{a == b}; }},
    {Code::kNot, [](uint64_t a, uint64_t) { return ~a; }},
    {Code::kShl, [](uint64_t a, uint64_t b) { return a << b; }},
    {Code::kNeg, [](uint64_t a, uint64_t) { return -a; }},
};

uint64_t FoldConvert(DType to, DType from, uint64_t bits) {
  if (IsFloat(from)) return ToBits(to, FloatOf(from, bits));
  if (to == DType::kBool) return bits != 0;
  if (IsInt(to)) return Masked(to, static_cast<uint64_t>(IntegerOf(from, bits)));
  const int64_t v = IntegerOf(from, bits);
  if (to == DType::kF32)  // through f64 it would round twice
    return std::bit_cast<uint32_t>(from == DType::kU64 ? static_cast<float>(bits)
                                                       : static_cast<float>(v));
  return ToBits(to, from == DType::kU64 ? static_cast<double>(bits) : static_cast<double>(v));
}

template <class F>
std::optional<uint64_t> FoldFloats(const Folding& f, std::span<const uint64_t> bits) {
  const auto fold = kFloatFolds<F>[f.code];
  const auto at = [&](size_t n) {
    return n < bits.size() ? static_cast<F>(FloatOf(f.arg, bits[n])) : F{};
  };
  return fold != nullptr ? std::optional(ToBits(f.result, fold(at(0), at(1), at(2))))
                         : std::nullopt;
}

template <class T>
std::optional<uint64_t> FoldIntegers(Code code, T a, T b) {
  if (IsOneOf(code, {Code::kDiv, Code::kRem}) &&
      (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1))))
    return std::nullopt;
  const auto fold = kIntegerFolds<T>[code];
  return fold != nullptr ? std::optional<uint64_t>(fold(a, b)) : std::nullopt;
}

// Of integers and bool.
std::optional<uint64_t> FoldBits(const Folding& f, std::span<const uint64_t> bits) {
  const uint64_t a = bits[0], b = bits.size() > 1 ? bits[1] : 0;
  if ((f.code == Code::kShl || f.code == Code::kShr) && b >= static_cast<uint64_t>(BitWidth(f.arg)))
    return std::nullopt;
  std::optional<uint64_t> made;
  if (kBitFolds[f.code] != nullptr)
    made = kBitFolds[f.code](a, b);
  else
    made = IsSigned(f.arg) ? FoldIntegers(f.code, IntegerOf(f.arg, a), IntegerOf(f.arg, b))
                           : FoldIntegers(f.code, a, b);
  return made ? std::optional(Masked(f.result, *made)) : std::nullopt;
}

}  // namespace

double LowestOf(DType t) {
  return t == DType::kF64 ? std::numeric_limits<double>::lowest()
                          : std::numeric_limits<float>::lowest();
}

uint64_t Masked(DType t, uint64_t bits) {
  const int width = t == DType::kBool ? 1 : BitWidth(t);
  return width >= 64 ? bits : bits & ((uint64_t{1} << width) - 1);
}

uint64_t ToBits(DType t, double v) {
  switch (t) {
    case DType::kBool:
      return v != 0;
    case DType::kF16:
      return F32ToF16(static_cast<float>(v));
    case DType::kBF16:
      return F32ToBF16(static_cast<float>(v));
    case DType::kF32:
      return std::bit_cast<uint32_t>(static_cast<float>(v));
    case DType::kF64:
      return std::bit_cast<uint64_t>(v);
    default:
      return SaturatedBits(t, v);
  }
}

uint64_t ToBits(DType t, const Number& v) {
  if (t == DType::kF32) return std::bit_cast<uint32_t>(v.f32());
  if (!v.is_integer() || t == DType::kBool || IsFloat(t)) return ToBits(t, v.f64());
  const int spare = 64 - BitWidth(t);
  if (!IsSigned(t)) return std::min(v.u64(), ~uint64_t{0} >> spare);
  const int64_t high = INT64_MAX >> spare;
  return Masked(t, static_cast<uint64_t>(std::clamp(v.i64(), -high - 1, high)));
}

double FloatOf(DType t, uint64_t bits) {
  switch (t) {
    case DType::kF16:
      return F16ToF32(static_cast<uint16_t>(bits));
    case DType::kBF16:
      return BF16ToF32(static_cast<uint16_t>(bits));
    case DType::kF32:
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
    case DType::kF64:
      return std::bit_cast<double>(bits);
    case DType::kU64:
      return static_cast<double>(bits);
    default:
      return static_cast<double>(IntegerOf(t, bits));
  }
}

int64_t IntegerOf(DType t, uint64_t bits) {
  if (!IsSigned(t)) return static_cast<int64_t>(bits);
  const int shift = 64 - BitWidth(t);
  return static_cast<int64_t>(bits << shift) >> shift;
}

Folder::Folder(const Folding& f) : f_(f) {
  using Bits = std::span<const uint64_t>;
  const bool compares = Info(f.code).rule == TypeRule::kCompare;
  if (f.code == Code::kSelect)
    fold_ = [](const Folding&, Bits bits) {
      return std::optional(bits[0] != 0 ? bits[1] : bits[2]);
    };
  else if (f.code == Code::kConvert)
    fold_ = [](const Folding& c, Bits bits) {
      return std::optional(FoldConvert(c.result, c.arg, bits[0]));
    };
  else if (f.code == Code::kBitcast)
    fold_ = [](const Folding&, Bits bits) { return std::optional(bits[0]); };
  else if (f.arg == DType::kF32)
    fold_ = FoldFloats<float>;
  else if (f.arg == DType::kF64 || (IsFloat(f.arg) && compares))
    fold_ = FoldFloats<double>;
  else if (IsFloat(f.arg) || (f.code == Code::kMulHigh && BitWidth(f.arg) != 32))
    fold_ = [](const Folding&, Bits) -> std::optional<uint64_t> { return std::nullopt; };
  else
    fold_ = FoldBits;
}

std::optional<uint64_t> FoldLiterals(const Folding& f, std::span<const uint64_t> bits) {
  return Folder(f)(bits);
}

DType ComputeType(DType t) {
  if (Has(kAllFloatTypes, t) && BitWidth(t) < 32) return DType::kF32;
  if (Has(kIntTypes | kTinyIntTypes, t) && BitWidth(t) < 32)
    return IsSigned(t) ? DType::kI32 : DType::kU32;
  return t;
}

}  // namespace forge::codegen
