// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "vk_runtime/self_test/measure_rates.h"

namespace forge::vk {
namespace {

constexpr int64_t kMiB = 1 << 20;

TEST(RatesTest, FindsTheLargestSetThatIsReadFasterThanMemory) {
  EXPECT_EQ(CacheBytesOf(std::array{1.0, 1.1, 2.0, 2.7}), 8 * kMiB);
  EXPECT_EQ(CacheBytesOf(std::array{1.0, 1.0, 3.0, 3.1, 3.0}), 2 * kMiB);
  EXPECT_EQ(CacheBytesOf(std::array{1.0, 1.0, 1.1, 1.1, 3.0}), 32 * kMiB);
  EXPECT_EQ(CacheBytesOf(std::array{1.0, 2.0, 2.1, 2.0}), kMiB / 2);
}

TEST(RatesTest, SmallSetsThatSeemSlowAreNoise) {
  EXPECT_EQ(CacheBytesOf(std::array{5.0, 1.0, 2.0, 2.7}), 8 * kMiB);
  EXPECT_EQ(CacheBytesOf(std::array{1.0, 9.0, 1.2, 2.7, 2.8}), 8 * kMiB);
}

TEST(RatesTest, KnowsNoCacheWithoutADifference) {
  EXPECT_EQ(CacheBytesOf(std::array{1.0, 1.05, 1.1, 1.15}), 0);
  EXPECT_EQ(CacheBytesOf(std::array{2.0, 2.0, 2.0, 1.0}), 0);
  EXPECT_EQ(CacheBytesOf(std::array{1.0}), 0);
  EXPECT_EQ(CacheBytesOf({}), 0);
  EXPECT_EQ(CacheBytesOf(std::array{0.0, 0.0, 0.0}), 0) << "a clock that stands";
}

// Two verdicts of one device whose measures differ a little say the same.
TEST(RatesTest, RoundsSoThatNoiseMakesNoOtherKernels) {
  const auto ratio = [](double flops) {
    return Rates{.flops = flops, .bytes = 1e9}.FlopsPerByte();
  };
  EXPECT_EQ(ratio(13e9), 16);
  EXPECT_EQ(ratio(19e9), 16);
  EXPECT_EQ(ratio(1e8), 1);
  for (const double more : {0.9, 1.0, 1.1})
    EXPECT_EQ(CacheBytesOf(std::array{1.0 * more, 1.1, 2.0 * more, 2.7}), 8 * kMiB) << more;
}

TEST(RatesTest, TellsWhatNoCacheHas) {
  for (const int64_t bytes : {int64_t{0}, kMiB / 2, 2 * kMiB, 32 * kMiB})
    EXPECT_TRUE(CanBeCache(bytes)) << bytes;
  for (const int64_t bytes : {int64_t{-1}, int64_t{1}, 3 * kMiB, kLargestSet, INT64_MIN, INT64_MAX})
    EXPECT_FALSE(CanBeCache(bytes)) << bytes;
}

}  // namespace
}  // namespace forge::vk
