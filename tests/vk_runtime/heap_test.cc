// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/heap.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace forge::vk {
namespace {

TEST(FreeListTest, FillsAndEmpties) {
  FreeList list(1024);
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.Take(1024, 1), 0u);
  EXPECT_EQ(list.Take(1, 1), std::nullopt);
  list.Give(0, 1024);
  EXPECT_TRUE(list.empty());
}

TEST(FreeListTest, KeepsAlignmentAndNeverOverlaps) {
  std::mt19937 random(1);
  FreeList list(1 << 16);
  std::vector<std::pair<uint64_t, uint64_t>> taken;
  for (int i = 0; i < 4000; ++i) {
    if (!taken.empty() && random() % 2 == 0) {
      std::swap(taken[random() % taken.size()], taken.back());
      list.Give(taken.back().first, taken.back().second);
      taken.pop_back();
      continue;
    }
    const uint64_t size = random() % 900 + 1, alignment = uint64_t{1} << random() % 9;
    const auto at = list.Take(size, alignment);
    if (!at) continue;
    EXPECT_EQ(*at % alignment, 0u);
    EXPECT_LE(*at + size, 1u << 16);
    for (const auto& [begin, bytes] : taken)
      EXPECT_TRUE(*at + size <= begin || begin + bytes <= *at);
    taken.emplace_back(*at, size);
  }
  for (const auto& [begin, bytes] : taken) list.Give(begin, bytes);
  EXPECT_TRUE(list.empty());
}

}  // namespace
}  // namespace forge::vk
