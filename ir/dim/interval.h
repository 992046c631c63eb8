// SPDX-License-Identifier: Apache-2.0
// Bounds of integer expressions in saturating arithmetic.
#pragma once
#include <algorithm>
#include <cstdint>

namespace forge::ir {

constexpr int64_t FloorDivide(int64_t a, int64_t b) {  // b > 0
  return a / b - (a % b < 0 ? 1 : 0);
}
constexpr int64_t FloorModulo(int64_t a, int64_t b) {  // b > 0
  return a % b < 0 ? a % b + b : a % b;
}
constexpr uint64_t Magnitude(int64_t v) {
  return v < 0 ? ~static_cast<uint64_t>(v) + 1 : static_cast<uint64_t>(v);
}

// The range low..high, inclusive. A low of INT64_MIN and a high of INT64_MAX also mean minus and
// plus infinity and remain so under addition, because sums of unbounded terms prove nothing.
struct Interval {
  int64_t low = INT64_MIN, high = INT64_MAX;

  bool Within(int64_t from, int64_t to) const { return low >= from && high <= to; }

  friend Interval operator+(const Interval& a, const Interval& b) {
    Interval out;
    if (a.low != INT64_MIN && b.low != INT64_MIN) out.low = Clamp(Wide{a.low} + b.low);
    if (a.high != INT64_MAX && b.high != INT64_MAX) out.high = Clamp(Wide{a.high} + b.high);
    return out;
  }
  friend Interval operator*(const Interval& a, const Interval& b) {
    const Wide ends[] = {Product(a.Low(), b.Low()), Product(a.Low(), b.High()),
                         Product(a.High(), b.Low()), Product(a.High(), b.High())};
    return {Clamp(*std::min_element(ends, ends + 4)), Clamp(*std::max_element(ends, ends + 4))};
  }

 private:
  using Wide = __int128;
  static constexpr Wide kInfinity = Wide{1} << 126;  // at least as large as any finite product
  Wide Low() const { return low == INT64_MIN ? -kInfinity : Wide{low}; }
  Wide High() const { return high == INT64_MAX ? kInfinity : Wide{high}; }
  static Wide Product(Wide a, Wide b) {
    if (a == 0 || b == 0) return 0;
    const bool infinite = a == kInfinity || a == -kInfinity || b == kInfinity || b == -kInfinity;
    if (!infinite) return a * b;
    return (a < 0) == (b < 0) ? kInfinity : -kInfinity;
  }
  static int64_t Clamp(Wide v) {
    return static_cast<int64_t>(std::clamp(v, Wide{INT64_MIN}, Wide{INT64_MAX}));
  }
};

}  // namespace forge::ir
