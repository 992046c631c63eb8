// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace forge {
namespace {

using Kind = Number::Kind;
constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(NumberTest, HoldsEveryIntegerExactly) {
  for (int64_t v : {INT64_MIN, INT64_MIN + 1, int64_t{-1}, int64_t{0}, (int64_t{1} << 53) + 1,
                    INT64_MAX - 1, INT64_MAX}) {
    EXPECT_EQ(Number(v).kind(), Kind::kI64);
    EXPECT_EQ(Number(v).i64(), v);
    EXPECT_EQ(Number(v).ToText(), std::to_string(v));
  }
  for (uint64_t v : {uint64_t{1} << 63, UINT64_MAX - 1, UINT64_MAX}) {
    EXPECT_EQ(Number(v).kind(), Kind::kU64);
    EXPECT_EQ(Number(v).u64(), v);
    EXPECT_EQ(Number(v).ToText(), std::to_string(v));
  }
  EXPECT_NE(Number((int64_t{1} << 53) + 1), Number(int64_t{1} << 53));
}

TEST(NumberTest, HasOneFormHoweverItWasWritten) {
  EXPECT_EQ(Number(2.0), Number(2));
  EXPECT_EQ(Number(2), Number(uint8_t{2}));
  EXPECT_EQ(Number(true), Number(1));
  EXPECT_EQ(Number(0x1p63), Number(uint64_t{1} << 63));
  EXPECT_EQ(Number(-0x1p63), Number(INT64_MIN));
  EXPECT_EQ(Number(std::complex(2.5, 0.0)), Number(2.5));
  EXPECT_EQ(Number(0x1p64).kind(), Kind::kF64);
  EXPECT_EQ(Number(-0.0).kind(), Kind::kF64);
  EXPECT_NE(Number(-0.0), Number(0));
  EXPECT_NE(Number(std::complex(2.5, -0.0)), Number(2.5));
  EXPECT_EQ(Number(NAN), Number(NAN));
}

TEST(NumberTest, ConvertsAsCastDoes) {
  EXPECT_EQ(Number(1e300).i64(), INT64_MAX);
  EXPECT_EQ(Number(-1e300).i64(), INT64_MIN);
  EXPECT_EQ(Number(-1).u64(), 0u);
  EXPECT_EQ(Number(-1.5).u64(), 0u);
  EXPECT_EQ(Number(UINT64_MAX).i64(), INT64_MAX);
  EXPECT_EQ(Number(kInf).u64(), UINT64_MAX);
  EXPECT_EQ(Number(-2.9).i64(), -2);
  EXPECT_EQ(Number(NAN).i64(), 0);
  EXPECT_EQ(Number(NAN).u64(), 0u);
  EXPECT_EQ(Number(std::complex(1.5, -2.0)).c128(), std::complex(1.5, -2.0));
  // Just above the middle of two floats, and at it once rounded to f64.
  EXPECT_EQ(Number((int64_t{1} << 60) + (int64_t{1} << 36) + 1).f32(), 0x1.000002p60f);
}

TEST(NumberTest, TextIsShort) {
  EXPECT_EQ(Number(0.5).ToText(), "0.5");
  EXPECT_EQ(Number(-0.0).ToText(), "-0");
  EXPECT_EQ(Number(1e300).ToText(), "1e+300");
  EXPECT_EQ(Number(NAN).ToText(), "nan");
  EXPECT_EQ(Number(-kInf).ToText(), "-inf");
  EXPECT_EQ(Number(std::complex(1.5, -2.0)).ToText(), "(1.5, -2)");
}

}  // namespace
}  // namespace forge
