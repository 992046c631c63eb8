// SPDX-License-Identifier: Apache-2.0
// A scalar for element-wise expressions that holds one number of type T, as a device would.
#pragma once
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace forge::ir {

// kFused: fma rounds once.
template <class T, bool kFused = true>
struct TestScalar {
  // Wraps instead of overflowing.
  using Wide = std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>,
                                  std::make_unsigned<T>, std::type_identity<T>>::type;
  T v = 0;
  TestScalar() = default;
  TestScalar(double x) : v(Saturated(x)) {}  // NOLINT: doubles stand on either side
  static TestScalar Raw(T v) {
    TestScalar x;
    x.v = v;
    return x;
  }
  explicit operator bool() const { return v != 0; }

 private:
  static T Saturated(double x) {
    if constexpr (std::is_integral_v<T>) {
      if (x >= static_cast<double>(std::numeric_limits<T>::max()))
        return std::numeric_limits<T>::max();
      if (x <= static_cast<double>(std::numeric_limits<T>::min()))
        return std::numeric_limits<T>::min();
    }
    return static_cast<T>(x);
  }
};

#define FORGE_SCALAR_BINARY(R, name, expression)                  \
  template <class T, bool F>                                      \
  TestScalar<R, F> name(TestScalar<T, F> a, TestScalar<T, F> b) { \
    using Wide = typename TestScalar<T, F>::Wide;                 \
    [[maybe_unused]] const Wide x = a.v, y = b.v;                 \
    return TestScalar<R, F>::Raw(static_cast<R>(expression));     \
  }                                                               \
  template <class T, bool F>                                      \
  TestScalar<R, F> name(TestScalar<T, F> a, double b) {           \
    return name(a, TestScalar<T, F>(b));                          \
  }                                                               \
  template <class T, bool F>                                      \
  TestScalar<R, F> name(double a, TestScalar<T, F> b) {           \
    return name(TestScalar<T, F>(a), b);                          \
  }
FORGE_SCALAR_BINARY(T, operator+, x + y)
FORGE_SCALAR_BINARY(T, operator-, x - y)
FORGE_SCALAR_BINARY(T, operator*, x* y)
FORGE_SCALAR_BINARY(bool, operator>, a.v > b.v)
FORGE_SCALAR_BINARY(bool, operator<, a.v < b.v)
FORGE_SCALAR_BINARY(bool, operator>=, a.v >= b.v)
FORGE_SCALAR_BINARY(bool, operator<=, a.v <= b.v)
FORGE_SCALAR_BINARY(bool, operator==, a.v == b.v)
FORGE_SCALAR_BINARY(T, max, a.v != a.v || a.v >= b.v ? a.v : b.v)
FORGE_SCALAR_BINARY(T, min, a.v != a.v || a.v <= b.v ? a.v : b.v)
#undef FORGE_SCALAR_BINARY

template <class T, bool F>
TestScalar<T, F> operator/(TestScalar<T, F> a, TestScalar<T, F> b) {
  if constexpr (std::is_integral_v<T>) {
    if (b.v == 0) return TestScalar<T, F>::Raw(static_cast<T>(-1));
    if (std::is_signed_v<T> && b.v == static_cast<T>(-1)) return 0.0 - a;
  }
  return TestScalar<T, F>::Raw(a.v / b.v);
}
template <class T, bool F>
TestScalar<T, F> operator/(TestScalar<T, F> a, double b) {
  return a / TestScalar<T, F>(b);
}
template <class T, bool F>
TestScalar<T, F> operator/(double a, TestScalar<T, F> b) {
  return TestScalar<T, F>(a) / b;
}
// One side may be a number.
template <class P, class T, bool F>
TestScalar<T, F> select(TestScalar<P, F> p, TestScalar<T, F> a,
                        std::type_identity_t<TestScalar<T, F>> b) {
  return p ? a : b;
}
template <class P, class T, bool F>
TestScalar<T, F> select(TestScalar<P, F> p, double a, TestScalar<T, F> b) {
  return p ? TestScalar<T, F>(a) : b;
}
template <class T, bool F>
TestScalar<T, F> fma(TestScalar<T, F> a, std::type_identity_t<TestScalar<T, F>> b,
                     std::type_identity_t<TestScalar<T, F>> c) {
  const volatile T product = a.v * b.v;  // volatile: the compiler must not fuse it again
  return TestScalar<T, F>::Raw(F ? std::fma(a.v, b.v, c.v) : product + c.v);
}
template <class T, bool F>
TestScalar<T, F> sqrt(TestScalar<T, F> x) {
  return TestScalar<T, F>::Raw(static_cast<T>(std::sqrt(x.v)));
}
template <class T, bool F>
TestScalar<T, F> floor(TestScalar<T, F> x) {
  return TestScalar<T, F>::Raw(std::floor(x.v));
}
template <class T, bool F>
TestScalar<T, F> round_even(TestScalar<T, F> x) {
  return TestScalar<T, F>::Raw(std::nearbyint(x.v));
}
template <bool F>
TestScalar<float, F> exp2_int(TestScalar<float, F> i) {
  if (std::isnan(i.v)) return 0.0;
  EXPECT_TRUE(i.v >= -126 && i.v <= 127) << i.v;
  return std::bit_cast<float>((static_cast<int32_t>(i.v) + 127) << 23);
}
template <bool F>
TestScalar<double, F> exp2_int(TestScalar<double, F> i) {
  if (std::isnan(i.v)) return 0.0;
  EXPECT_TRUE(i.v >= -1022 && i.v <= 1023) << i.v;
  return std::bit_cast<double>((static_cast<int64_t>(i.v) + 1023) << 52);
}
inline constexpr float kSqrtHalf = 0x1.6a09e6p-1f;
template <bool F>
TestScalar<float, F> nearest_exponent(TestScalar<float, F> x) {
  EXPECT_TRUE(x.v >= std::numeric_limits<float>::min()) << x.v;
  return (std::bit_cast<int32_t>(x.v) - std::bit_cast<int32_t>(kSqrtHalf)) >> 23;
}
template <bool F>
TestScalar<double, F> nearest_exponent(TestScalar<double, F> x) {
  EXPECT_TRUE(x.v >= std::numeric_limits<double>::min()) << x.v;
  return static_cast<double>((std::bit_cast<int64_t>(x.v) - 0x3fe6a09e667f3bcd) >> 52);
}
template <bool F>
TestScalar<float, F> high_half(TestScalar<float, F> x) {
  return TestScalar<float, F>::Raw(std::bit_cast<float>(std::bit_cast<uint32_t>(x.v) & ~0xfffu));
}
template <bool F>
TestScalar<double, F> high_half(TestScalar<double, F> x) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(x.v) & ~uint64_t{0x7ffffff});
}
template <class T, bool F>
TestScalar<T, F> operator-(TestScalar<T, F> x) {
  if constexpr (std::is_integral_v<T>)
    return TestScalar<T, F>::Raw(static_cast<T>(typename TestScalar<T, F>::Wide{0} - x.v));
  else
    return TestScalar<T, F>::Raw(-x.v);
}
template <class T, bool F>
TestScalar<T, F> abs(TestScalar<T, F> x) {
  if constexpr (std::is_floating_point_v<T>)
    return TestScalar<T, F>::Raw(std::fabs(x.v));
  else
    return x.v < T{0} ? -x : x;
}
template <class T, bool F>
TestScalar<T, F> copysign(TestScalar<T, F> x, TestScalar<T, F> sign) {
  return TestScalar<T, F>::Raw(std::copysign(x.v, sign.v));
}

// A row's form for floats of this width.
template <class Row, class T, bool F, class... More>
TestScalar<T, F> FormOf(const Row& row, TestScalar<T, F> x, More... more) {
  if constexpr (std::is_integral_v<T>)
    return row.integer(x, more...);
  else if constexpr (std::is_same_v<T, float>)
    return row.f32(x, more...);
  else
    return row.f64(x, more...);
}

// Of integers and booleans.
#define FORGE_SCALAR_LOGIC(op)                                           \
  template <class T, bool F>                                             \
  TestScalar<T, F> operator op(TestScalar<T, F> a, TestScalar<T, F> b) { \
    return TestScalar<T, F>::Raw(static_cast<T>(a.v op b.v));            \
  }
FORGE_SCALAR_LOGIC(&)
FORGE_SCALAR_LOGIC(|)
FORGE_SCALAR_LOGIC(^)
#undef FORGE_SCALAR_LOGIC
// Amounts of the width or more, and negative ones, give 0 or the sign.
template <class T, bool F>
TestScalar<T, F> operator<<(TestScalar<T, F> a, TestScalar<T, F> n) {
  const bool fits = n.v >= 0 && n.v < static_cast<T>(8 * sizeof(T));
  const uint64_t bits = static_cast<uint64_t>(a.v);
  return TestScalar<T, F>::Raw(static_cast<T>(fits ? bits << n.v : 0));
}
template <class T, bool F>
TestScalar<T, F> operator>>(TestScalar<T, F> a, TestScalar<T, F> n) {
  const bool fits = n.v >= 0 && n.v < static_cast<T>(8 * sizeof(T));
  const T beyond = static_cast<T>(a.v < T{0} ? -1 : 0);
  return TestScalar<T, F>::Raw(fits ? static_cast<T>(a.v >> n.v) : beyond);
}
// The upper half of a product of 32-bit integers.
template <class T, bool F>
TestScalar<T, F> mul_high(TestScalar<T, F> a, TestScalar<T, F> b) {
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  return TestScalar<T, F>::Raw(static_cast<T>((static_cast<Wide>(a.v) * Wide{b.v}) >> 32));
}
template <class T, bool F>
TestScalar<uint32_t, F> word_like(TestScalar<T, F>, uint32_t bits) {
  return TestScalar<uint32_t, F>::Raw(bits);
}
template <class T, bool F>
TestScalar<uint32_t, F> to_word(TestScalar<T, F> x) {
  EXPECT_TRUE(x.v >= 0 && x.v < T{0x1p32} && x.v == std::floor(x.v)) << x.v;
  return TestScalar<uint32_t, F>::Raw(static_cast<uint32_t>(x.v));
}
template <class T, bool F>
TestScalar<T, F> from_word(TestScalar<T, F>, TestScalar<uint32_t, F> w) {
  EXPECT_EQ(static_cast<uint32_t>(static_cast<T>(w.v)), w.v);
  return TestScalar<T, F>::Raw(static_cast<T>(w.v));
}
template <class T, bool F>
TestScalar<T, F> operator~(TestScalar<T, F> x) {
  if constexpr (std::is_same_v<T, bool>)
    return TestScalar<T, F>::Raw(!x.v);
  else
    return TestScalar<T, F>::Raw(static_cast<T>(~x.v));
}

}  // namespace forge::ir
