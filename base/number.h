// SPDX-License-Identifier: Apache-2.0
// A numeric literal of a model, for elements of any type.
#pragma once
#include <bit>
#include <complex>
#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>

namespace forge {

// Represents every 64-bit integer and every double exactly. A number has one representation, the
// first Kind that can hold it, so equal numbers have equal kinds and bits: 2 is always kI64; -0 is
// kF64.
class Number {
 public:
  enum class Kind : uint8_t { kI64, kU64, kF64, kC128 };

  constexpr Number() = default;  // 0
  template <std::integral T>
  constexpr Number(T v)  // NOLINT: a number is a number
      : kind_(!std::is_signed_v<T> && static_cast<uint64_t>(v) > INT64_MAX ? Kind::kU64
                                                                           : Kind::kI64),
        bits_(static_cast<uint64_t>(v)) {}
  constexpr Number(double v)  // NOLINT
      : kind_(KindOfDouble(v)),
        bits_(kind_ == Kind::kI64   ? static_cast<uint64_t>(static_cast<int64_t>(v))
              : kind_ == Kind::kU64 ? static_cast<uint64_t>(v)
                                    : std::bit_cast<uint64_t>(v)) {}
  constexpr Number(std::complex<double> v)  // NOLINT
      : Number(v.real()) {
    if (std::bit_cast<uint64_t>(v.imag()) == 0) return;
    kind_ = Kind::kC128;
    bits_ = std::bit_cast<uint64_t>(v.real());
    imaginary_ = std::bit_cast<uint64_t>(v.imag());
  }

  constexpr Kind kind() const { return kind_; }
  constexpr bool is_integer() const { return kind_ == Kind::kI64 || kind_ == Kind::kU64; }
  constexpr bool is_complex() const { return kind_ == Kind::kC128; }
  constexpr bool is_nan() const { return f64() != f64() || c128().imag() != c128().imag(); }
  // The nearest double; the real part of complex numbers.
  constexpr double f64() const {
    if (kind_ == Kind::kI64) return static_cast<double>(static_cast<int64_t>(bits_));
    return kind_ == Kind::kU64 ? static_cast<double>(bits_) : std::bit_cast<double>(bits_);
  }
  constexpr float f32() const {  // rounded once
    if (kind_ == Kind::kI64) return static_cast<float>(static_cast<int64_t>(bits_));
    return kind_ == Kind::kU64 ? static_cast<float>(bits_) : static_cast<float>(f64());
  }
  constexpr std::complex<double> c128() const { return {f64(), std::bit_cast<double>(imaginary_)}; }
  // Truncate and saturate; NaN gives 0.
  int64_t i64() const;
  uint64_t u64() const;
  // "-9223372036854775808", "0.5", "nan", "-0", "(1.5, -2)": the shortest digits that parse back to
  // the same number.
  std::string ToText() const;
  // The bits of an integer or a double, or of the real part.
  constexpr uint64_t bits() const { return bits_; }
  constexpr uint64_t imaginary_bits() const { return imaginary_; }
  friend constexpr bool operator==(const Number&, const Number&) = default;

 private:
  static constexpr Kind KindOfDouble(double v) {
    if (v == 0) return std::bit_cast<uint64_t>(v) == 0 ? Kind::kI64 : Kind::kF64;
    if (v >= -0x1p63 && v < 0x1p63)
      return static_cast<double>(static_cast<int64_t>(v)) == v ? Kind::kI64 : Kind::kF64;
    return v >= 0x1p63 && v < 0x1p64 ? Kind::kU64 : Kind::kF64;
  }

  Kind kind_ = Kind::kI64;
  uint64_t bits_ = 0, imaginary_ = 0;
};

}  // namespace forge
