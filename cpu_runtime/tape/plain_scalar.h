// SPDX-License-Identifier: Apache-2.0
// One element of any type as the scalar of ir/ops/elementwise/rows.inc: for the types that
// have no vector code.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace forge::cpu {

// Converts `v` to T: floats round; integers truncate and saturate, and NaN becomes 0.
template <class T>
constexpr T FromDouble(double v) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(v);
  } else if constexpr (std::is_same_v<T, bool>) {
    return v != 0;
  } else {
    // The bounds as doubles: the upper one of 64-bit types rounds to the power of two above it.
    constexpr double kLow = static_cast<double>(std::numeric_limits<T>::min());
    constexpr double kHigh = static_cast<double>(std::numeric_limits<T>::max());
    if (v >= kHigh) return std::numeric_limits<T>::max();
    if (v <= kLow) return std::numeric_limits<T>::min();
    return v == v ? static_cast<T>(v) : T{0};
  }
}

// The unsigned type in which arithmetic on T wraps; at least as wide as int, so that there is no
// promotion to int.
template <class T>
using Wrap = std::conditional_t<(sizeof(T) < sizeof(unsigned)), unsigned,
                                std::make_unsigned_t<std::conditional_t<
                                    std::is_integral_v<T> && !std::is_same_v<T, bool>, T, int>>>;

// An element of type T.
template <class T>
struct Plain {
  T v{};
  constexpr Plain() = default;
  constexpr explicit Plain(T value)
    requires(!std::is_same_v<T, double>)
      : v(value) {}
  constexpr Plain(double value) : v(FromDouble<T>(value)) {}  // NOLINT: numbers mix with elements

  friend constexpr Plain operator+(Plain a, Plain b) {
    if constexpr (std::is_integral_v<T>)
      return Plain(static_cast<T>(static_cast<Wrap<T>>(a.v) + static_cast<Wrap<T>>(b.v)));
    else
      return Plain(a.v + b.v);
  }
  friend constexpr Plain operator-(Plain a, Plain b) {
    if constexpr (std::is_integral_v<T>)
      return Plain(static_cast<T>(static_cast<Wrap<T>>(a.v) - static_cast<Wrap<T>>(b.v)));
    else
      return Plain(a.v - b.v);
  }
  friend constexpr Plain operator*(Plain a, Plain b) {
    if constexpr (std::is_integral_v<T>)
      return Plain(static_cast<T>(static_cast<Wrap<T>>(a.v) * static_cast<Wrap<T>>(b.v)));
    else
      return Plain(a.v * b.v);
  }
  friend constexpr Plain operator/(Plain a, Plain b) {
    if constexpr (std::is_integral_v<T>) {
      if (b.v == 0) return Plain(static_cast<T>(-1));
      if constexpr (std::is_signed_v<T>)
        if (b.v == T{-1}) return Plain(T{0}) - a;  // the lowest value has no counterpart
      return Plain(static_cast<T>(a.v / b.v));
    } else {
      return Plain(a.v / b.v);
    }
  }
  friend constexpr Plain<bool> operator>(Plain a, Plain b) { return Plain<bool>(a.v > b.v); }
  friend constexpr Plain<bool> operator<(Plain a, Plain b) { return Plain<bool>(a.v < b.v); }
  friend constexpr Plain<bool> operator>=(Plain a, Plain b) { return Plain<bool>(a.v >= b.v); }
  friend constexpr Plain<bool> operator<=(Plain a, Plain b) { return Plain<bool>(a.v <= b.v); }
  friend constexpr Plain<bool> operator==(Plain a, Plain b) { return Plain<bool>(a.v == b.v); }
  friend constexpr Plain operator&(Plain a, Plain b) { return Plain(static_cast<T>(a.v & b.v)); }
  friend constexpr Plain operator|(Plain a, Plain b) { return Plain(static_cast<T>(a.v | b.v)); }
  friend constexpr Plain operator^(Plain a, Plain b) { return Plain(static_cast<T>(a.v ^ b.v)); }
  friend constexpr Plain operator~(Plain a) {
    if constexpr (std::is_same_v<T, bool>)
      return Plain(!a.v);
    else
      return Plain(static_cast<T>(~a.v));
  }
  // Amounts of the width or more, and negative ones, give 0 or the sign.
  friend constexpr Plain operator<<(Plain a, Plain n) {
    const bool fits = n.v >= 0 && n.v < static_cast<T>(8 * sizeof(T));
    return Plain(static_cast<T>(fits ? static_cast<Wrap<T>>(a.v) << n.v : 0));
  }
  friend constexpr Plain operator>>(Plain a, Plain n) {
    const bool fits = n.v >= 0 && n.v < static_cast<T>(8 * sizeof(T));
    return fits ? Plain(static_cast<T>(a.v >> n.v)) : Plain(static_cast<T>(a.v < 0 ? -1 : 0));
  }
  // Of 32 bits.
  friend constexpr Plain mul_high(Plain a, Plain b) {
    using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
    return Plain(static_cast<T>((static_cast<Wide>(a.v) * static_cast<Wide>(b.v)) >> 32));
  }
  friend constexpr Plain operator-(Plain a) {
    if constexpr (std::is_integral_v<T>)
      return Plain(T{0}) - a;
    else
      return Plain(-a.v);
  }
  friend constexpr Plain abs(Plain a) {
    if constexpr (std::is_floating_point_v<T>)
      return Plain(std::fabs(a.v));
    else if constexpr (std::is_signed_v<T>)
      return a.v < 0 ? -a : a;
    else
      return a;
  }
  friend Plain copysign(Plain a, Plain sign) { return Plain(std::copysign(a.v, sign.v)); }
  friend constexpr Plain max(Plain a, Plain b) { return std::isnan(a.v) || a.v > b.v ? a : b; }
  friend constexpr Plain min(Plain a, Plain b) { return std::isnan(a.v) || a.v < b.v ? a : b; }
  friend constexpr Plain select(Plain<bool> c, Plain a, Plain b) { return c.v ? a : b; }
  friend Plain sqrt(Plain a) { return Plain(static_cast<T>(std::sqrt(a.v))); }
  friend Plain floor(Plain a) { return Plain(std::floor(a.v)); }
  friend Plain round_even(Plain a) { return Plain(std::nearbyint(a.v)); }
  friend Plain fma(Plain a, Plain b, Plain c) { return Plain(a.v * b.v + c.v); }
};

inline Plain<double> exp2_int(Plain<double> i) {
  const int64_t n = std::isnan(i.v) ? 0 : static_cast<int64_t>(i.v);
  return Plain<double>(std::bit_cast<double>(static_cast<uint64_t>(n + 1023) << 52));
}
inline Plain<double> nearest_exponent(Plain<double> x) {
  const int64_t above = std::bit_cast<int64_t>(x.v) - 0x3fe6a09e667f3bcd;
  return Plain<double>(static_cast<double>(above >> 52));
}
inline Plain<double> high_half(Plain<double> x) {
  return Plain<double>(std::bit_cast<double>(std::bit_cast<uint64_t>(x.v) & ~uint64_t{0x7ffffff}));
}
inline Plain<uint32_t> word_like(Plain<double>, uint32_t bits) { return Plain<uint32_t>(bits); }
inline Plain<uint32_t> to_word(Plain<double> x) { return Plain<uint32_t>(x.v); }
inline Plain<double> from_word(Plain<double>, Plain<uint32_t> word) {
  return Plain<double>(static_cast<double>(word.v));
}
template <class Row, class T, class... More>
Plain<T> FormOf(const Row& row, Plain<T> x, More... more) {
  if constexpr (std::is_integral_v<T>)
    return row.integer(x, more...);
  else
    return row.f64(x, more...);
}

}  // namespace forge::cpu
