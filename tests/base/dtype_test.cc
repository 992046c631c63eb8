// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <limits>
#include <random>

#include "base/narrow_float.h"

namespace forge {
namespace {

constexpr DType kAll[] = {
    DType::kBool,   DType::kU2,         DType::kU4,         DType::kU8,     DType::kU16,
    DType::kU32,    DType::kU64,        DType::kI2,         DType::kI4,     DType::kI8,
    DType::kI16,    DType::kI32,        DType::kI64,        DType::kF4E2M1, DType::kF8E4M3,
    DType::kF8E5M2, DType::kF8E4M3Fnuz, DType::kF8E5M2Fnuz, DType::kBF16,   DType::kF16,
    DType::kF32,    DType::kF64,        DType::kC64,        DType::kC128,   DType::kString};

TEST(DTypeTest, NamesParseBack) {
  static_assert(std::size(kAll) == kDTypeCount);
  for (DType t : kAll) EXPECT_EQ(ParseDType(Name(t)), t);
  EXPECT_EQ(ParseDType("f31"), std::nullopt);
  EXPECT_EQ(ParseDType(""), std::nullopt);
}

TEST(DTypeTest, SetsHoldSixtyFour) {
  constexpr auto kLast = static_cast<DType>(63);
  EXPECT_TRUE(Has(Bit(kLast) | Bit(DType::kBool), kLast));
  EXPECT_FALSE(Has(kAnyTypes, kLast));
  for (DType t : kAll) EXPECT_TRUE(Has(kAnyTypes, t)) << Name(t);
}

TEST(DTypeTest, BytesArePackedAndChecked) {
  EXPECT_EQ(BytesOf(DType::kF32, 3), 12u);
  EXPECT_EQ(BytesOf(DType::kBool, 3), 3u);
  EXPECT_EQ(BytesOf(DType::kI4, 3), 2u);
  EXPECT_EQ(BytesOf(DType::kU2, 5), 2u);
  EXPECT_EQ(BytesOf(DType::kI4, 0), 0u);
  EXPECT_EQ(BytesOf(DType::kI4, UINT64_MAX), (UINT64_MAX / 2) + 1);
  EXPECT_EQ(BytesOf(DType::kF16, UINT64_MAX / 2 + 1), std::nullopt);
  EXPECT_EQ(BytesOf(DType::kString, 1), std::nullopt);
}

TEST(DTypeTest, EveryF16RoundTrips) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float v = F16ToF32(half);
    if (std::isnan(v)) {
      EXPECT_TRUE(std::isnan(F16ToF32(F32ToF16(v))));
    } else {
      ASSERT_EQ(F32ToF16(v), half);
    }
    ASSERT_EQ(std::isnan(v), std::isnan(DecodeNarrowFloat(DType::kF16, half)));
    if (std::isnan(v)) continue;
    ASSERT_EQ(static_cast<double>(v), DecodeNarrowFloat(DType::kF16, half));
  }
}

TEST(DTypeTest, EveryBF16RoundTrips) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto narrow = static_cast<uint16_t>(bits);
    const float v = BF16ToF32(narrow);
    if (std::isnan(v)) {
      EXPECT_TRUE(std::isnan(BF16ToF32(F32ToBF16(v))));
    } else {
      ASSERT_EQ(F32ToBF16(v), narrow);
      ASSERT_EQ(static_cast<double>(v), DecodeNarrowFloat(DType::kBF16, narrow));
    }
  }
}

TEST(DTypeTest, RoundsHalfToEven) {
  EXPECT_EQ(F16ToF32(F32ToF16(2049)), 2048);
  EXPECT_EQ(F16ToF32(F32ToF16(2051)), 2052);
  EXPECT_EQ(F16ToF32(F32ToF16(65519.99f)), 65504);
  EXPECT_EQ(F16ToF32(F32ToF16(65520)), INFINITY);
  EXPECT_EQ(F32ToF16(0x1p-25f), 0) << "half the smallest denormal";
  EXPECT_EQ(F32ToF16(0x1.8p-25f), 1);
  EXPECT_EQ(F32ToF16(0x1.8p-24f), 2);
  EXPECT_EQ(F32ToF16(-0.0f), 0x8000);
  EXPECT_EQ(BF16ToF32(F32ToBF16(257)), 256);
  EXPECT_EQ(BF16ToF32(F32ToBF16(259)), 260);
  EXPECT_EQ(BF16ToF32(F32ToBF16(std::numeric_limits<float>::max())), INFINITY);
}

// Between each pair of neighbours: the middle goes to the even code, all else to the nearer.
TEST(DTypeTest, NarrowFloatsRoundToTheNearest) {
  for (DType t : {DType::kF4E2M1, DType::kF8E4M3, DType::kF8E5M2, DType::kF8E4M3Fnuz,
                  DType::kF8E5M2Fnuz, DType::kF16, DType::kBF16}) {
    const uint32_t codes = 1u << (BitWidth(t) - 1);
    for (uint32_t c = 0; c + 1 < codes; ++c) {
      const auto low = static_cast<uint16_t>(c), high = static_cast<uint16_t>(c + 1);
      const double a = DecodeNarrowFloat(t, low), b = DecodeNarrowFloat(t, high);
      if (!std::isfinite(a) || !std::isfinite(b)) break;
      ASSERT_LT(a, b);
      const double middle = (a + b) / 2;
      ASSERT_EQ(EncodeNarrowFloat(t, a), low) << Name(t);
      ASSERT_EQ(EncodeNarrowFloat(t, std::nextafter(middle, 0)), low) << Name(t) << " " << middle;
      ASSERT_EQ(EncodeNarrowFloat(t, std::nextafter(middle, INFINITY)), high) << Name(t);
      ASSERT_EQ(EncodeNarrowFloat(t, middle), c % 2 == 0 ? low : high) << Name(t) << " " << middle;
      ASSERT_EQ(DecodeNarrowFloat(t, EncodeNarrowFloat(t, -a)), -a) << Name(t);
    }
  }
}

TEST(DTypeTest, NarrowFloatsSaturateWhereTheyLackInfinity) {
  EXPECT_EQ(DecodeNarrowFloat(DType::kF4E2M1, EncodeNarrowFloat(DType::kF4E2M1, 100)), 6);
  EXPECT_EQ(DecodeNarrowFloat(DType::kF8E4M3, EncodeNarrowFloat(DType::kF8E4M3, -1e9)), -448);
  EXPECT_EQ(DecodeNarrowFloat(DType::kF8E4M3Fnuz, EncodeNarrowFloat(DType::kF8E4M3Fnuz, 1e9)), 240);
  EXPECT_EQ(DecodeNarrowFloat(DType::kF8E5M2Fnuz, EncodeNarrowFloat(DType::kF8E5M2Fnuz, INFINITY)),
            57344);
  EXPECT_EQ(DecodeNarrowFloat(DType::kF8E5M2, EncodeNarrowFloat(DType::kF8E5M2, 1e9)), INFINITY);
  for (DType t : {DType::kF8E4M3, DType::kF8E5M2, DType::kF8E4M3Fnuz, DType::kF8E5M2Fnuz})
    EXPECT_TRUE(std::isnan(DecodeNarrowFloat(t, EncodeNarrowFloat(t, NAN)))) << Name(t);
  EXPECT_EQ(EncodeNarrowFloat(DType::kF8E4M3Fnuz, -1e-9), 0) << "minus zero would be NaN";
}

TEST(DTypeTest, OneRoundingFromF64) {
  // Just above the middle of two f16 neighbours, by less than f32 can tell.
  const double v = 1 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(EncodeNarrowFloat(DType::kF16, v), 0x3c01);
  EXPECT_EQ(F32ToF16(static_cast<float>(v)), 0x3c00) << "rounded twice";
}

}  // namespace
}  // namespace forge
