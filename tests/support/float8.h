// SPDX-License-Identifier: Apache-2.0
// Where casts to and from floats of a byte can go wrong.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/narrow_float.h"
#include "ir/type/host_value.h"

namespace forge::testing {

// Every code of a byte.
inline ir::HostValue AllCodes(DType t) {
  ir::HostValue v = *ir::HostValue::Zeros(t, std::vector<int64_t>{256});
  for (size_t i = 0; i < 256; ++i) v.mutable_bytes()[i] = static_cast<uint8_t>(i);
  return v;
}

// Every finite number of `t`, what lies half-way between two of them and beyond the largest, the
// neighbours of both in f32, and numbers far outside; of both signs.
inline ir::HostValue NumbersAround(DType t) {
  std::vector<float> numbers;
  for (uint16_t code = 0; code < 128; ++code)
    if (const double v = DecodeNarrowFloat(t, code); std::isfinite(v))
      numbers.push_back(static_cast<float>(v));
  const size_t finite = numbers.size();
  for (size_t i = 1; i < finite; ++i) numbers.push_back((numbers[i - 1] + numbers[i]) / 2);
  const float last = numbers[finite - 1], step = last - numbers[finite - 2];
  numbers.insert(numbers.end(), {last + step / 2, last + step, 2 * last});
  for (size_t i = numbers.size(); i-- > 0;)
    for (const float to : {0.0f, INFINITY}) numbers.push_back(std::nextafter(numbers[i], to));
  numbers.insert(numbers.end(), {1e-45f, 1e-38f, 1e-20f, 1e20f, 3.4e38f, INFINITY, NAN});
  const auto n = static_cast<int64_t>(numbers.size());
  ir::HostValue v = *ir::HostValue::Zeros(DType::kF32, std::vector<int64_t>{2 * n});
  for (int64_t i = 0; i < n; ++i) {
    v.Set(2 * i, numbers[static_cast<size_t>(i)]);
    v.Set(2 * i + 1, -numbers[static_cast<size_t>(i)]);
  }
  return v;
}

// Bit for bit, but that any NaN is as good as another.
inline void ExpectSameNumbers(const ir::HostValue& from, const ir::HostValue& want,
                              const ir::HostValue& got) {
  ASSERT_EQ(want.type(), got.type());
  for (int64_t i = 0; i < want.elements(); ++i) {
    const double w = want.f64(i), g = got.f64(i);
    const bool same = std::isnan(w) ? std::isnan(g) : w == g && std::signbit(w) == std::signbit(g);
    EXPECT_TRUE(same) << from.type().ToText() << " " << from.f64(i) << " as " << Name(got.dtype())
                      << " is " << g << ", should be " << w;
  }
}

inline constexpr DType kFloat8s[] = {DType::kF8E4M3, DType::kF8E5M2, DType::kF8E4M3Fnuz,
                                     DType::kF8E5M2Fnuz};

}  // namespace forge::testing
