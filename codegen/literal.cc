// SPDX-License-Identifier: Apache-2.0
#include "codegen/literal.h"

#include <bit>
#include <cmath>
#include <type_traits>
#include <utility>

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

template <class F>
std::optional<F> FoldFloat(Code code, F a, F b, F c) {
  switch (code) {
    case Code::kAdd:
      return a + b;
    case Code::kSub:
      return a - b;
    case Code::kMul:
      return a * b;
    case Code::kDiv:
      return a / b;
    case Code::kMin:
      return std::isnan(a) || a <= b ? a : b;
    case Code::kMax:
      return std::isnan(a) || a >= b ? a : b;
    case Code::kFma:
      return std::fma(a, b, c);
    case Code::kNeg:
      return -a;
    case Code::kAbs:
      return std::fabs(a);
    case Code::kSqrt:
      return std::sqrt(a);
    case Code::kRsqrt:
      return 1 / std::sqrt(a);
    case Code::kFloor:
      return std::floor(a);
    case Code::kRoundEven:
      return std::nearbyint(a);
    default:
      return std::nullopt;
  }
}

// Of elements extended to 64 bits, where the sign matters.
template <class T>
std::optional<uint64_t> FoldInteger(Code code, T a, T b) {
  switch (code) {
    case Code::kDiv:
    case Code::kRem:
      if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1))) return std::nullopt;
      return code == Code::kDiv ? a / b : a % b;
    case Code::kMin:
      return std::min(a, b);
    case Code::kMax:
      return std::max(a, b);
    case Code::kShr:
      return a >> b;
    case Code::kMulHigh:  // of 32 bits
      return a * b >> 32;
    case Code::kAbs:  // wraps
      return std::is_signed_v<T> && std::cmp_less(a, 0) ? -static_cast<uint64_t>(a) : a;
    default:
      return std::nullopt;
  }
}

// What does not depend on the sign; also bool, with one bit.
std::optional<uint64_t> FoldBits(Code code, uint64_t a, uint64_t b) {
  switch (code) {
    case Code::kAdd:
      return a + b;
    case Code::kSub:
      return a - b;
    case Code::kMul:
      return a * b;
    case Code::kAnd:
      return a & b;
    case Code::kOr:
      return a | b;
    case Code::kXor:
      return a ^ b;
    case Code::kNot:
      return ~a;
    case Code::kShl:
      return a << b;
    case Code::kNeg:
      return -a;
    default:
      return std::nullopt;
  }
}

template <class T>
std::optional<uint64_t> FoldCompare(Code code, T a, T b) {
  switch (code) {
    case Code::kEq:
      return a == b;
    case Code::kLt:
      return a < b;
    case Code::kLe:
      return a <= b;
    default:
      return std::nullopt;
  }
}

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

std::optional<uint64_t> FoldArithmetic(const Folding& f, std::span<const uint64_t> bits) {
  const uint64_t a = bits[0], b = bits.size() > 1 ? bits[1] : 0, c = bits.size() > 2 ? bits[2] : 0;
  auto at = [&](uint64_t x) { return FloatOf(f.arg, x); };
  if (f.arg == DType::kF32) {
    auto r = FoldFloat<float>(f.code, static_cast<float>(at(a)), static_cast<float>(at(b)),
                              static_cast<float>(at(c)));
    return r ? std::optional(ToBits(f.result, *r)) : std::nullopt;
  }
  if (f.arg == DType::kF64) {
    auto r = FoldFloat<double>(f.code, at(a), at(b), at(c));
    return r ? std::optional(ToBits(f.result, *r)) : std::nullopt;
  }
  if (IsFloat(f.arg) || (f.code == Code::kMulHigh && BitWidth(f.arg) != 32)) return std::nullopt;
  if ((f.code == Code::kShl || f.code == Code::kShr) && b >= static_cast<uint64_t>(BitWidth(f.arg)))
    return std::nullopt;
  std::optional<uint64_t> r = FoldBits(f.code, a, b);
  if (!r)
    r = IsSigned(f.arg) ? FoldInteger(f.code, IntegerOf(f.arg, a), IntegerOf(f.arg, b))
                        : FoldInteger(f.code, a, b);
  return r ? std::optional(Masked(f.result, *r)) : std::nullopt;
}

}  // namespace

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

std::optional<uint64_t> FoldLiterals(const Folding& f, std::span<const uint64_t> bits) {
  switch (f.code) {
    case Code::kSelect:
      return bits[0] != 0 ? bits[1] : bits[2];
    case Code::kConvert:
      return FoldConvert(f.result, f.arg, bits[0]);
    case Code::kBitcast:
      return bits[0];
    case Code::kEq:
    case Code::kLt:
    case Code::kLe:
      if (IsFloat(f.arg))
        return FoldCompare(f.code, FloatOf(f.arg, bits[0]), FloatOf(f.arg, bits[1]));
      if (IsSigned(f.arg))
        return FoldCompare(f.code, IntegerOf(f.arg, bits[0]), IntegerOf(f.arg, bits[1]));
      return FoldCompare(f.code, bits[0], bits[1]);
    default:
      return FoldArithmetic(f, bits);
  }
}

}  // namespace forge::codegen
