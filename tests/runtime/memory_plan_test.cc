// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/memory_plan.h"

#include <gtest/gtest.h>

#include <random>

#include "base/bytes.h"
#include "runtime/device/device.h"

namespace forge {
namespace {

constexpr uint64_t kHuge = uint64_t{1} << 40;

bool Overlap(const Lifetime& a, const Placement& pa, const Lifetime& b, const Placement& pb) {
  const bool in_time = a.first <= b.last && b.first <= a.last;
  const bool in_space = pa.offset < pb.offset + b.bytes && pb.offset < pa.offset + a.bytes;
  return pa.chunk == pb.chunk && in_time && in_space;
}

TEST(MemoryPlanTest, ReusesMemoryOfDeadValues) {
  const ArenaPlan plan = PlanArena({{1024, 0, 1}, {1024, 1, 2}, {1024, 2, 3}}, kHuge);
  EXPECT_EQ(plan.total_bytes(), 2048u);
  EXPECT_EQ(plan.places[0].offset, plan.places[2].offset);
}

TEST(MemoryPlanTest, NothingThatLivesTogetherOverlaps) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<Lifetime> values;
    for (int i = 0; i < 60; ++i) {
      const int first = static_cast<int>(random() % 40);
      values.push_back({random() % 5000, first, first + static_cast<int>(random() % 8)});
    }
    const ArenaPlan plan = PlanArena(values, 16384);
    for (size_t a = 0; a < values.size(); ++a) {
      EXPECT_EQ(plan.places[a].offset % kAlignment, 0u);
      EXPECT_LE(plan.places[a].offset + values[a].bytes, plan.chunk_bytes[plan.places[a].chunk]);
      for (size_t b = a + 1; b < values.size(); ++b)
        EXPECT_FALSE(Overlap(values[a], plan.places[a], values[b], plan.places[b]))
            << a << " " << b;
    }
    for (uint64_t chunk : plan.chunk_bytes) EXPECT_LE(chunk, 16384u);
    EXPECT_GE(plan.total_bytes(), plan.largest_live_set);
  }
}

TEST(MemoryPlanTest, OpensAnotherChunkBeyondTheLargestBuffer) {
  const ArenaPlan plan = PlanArena({{3000, 0, 5}, {3000, 0, 5}}, 4096);
  EXPECT_EQ(plan.chunk_bytes.size(), 2u);
}

// Chunks may begin anew wherever the device's allocations end, so nothing else lies in them.
TEST(MemoryPlanTest, ValuesBeyondTheLargestBufferHaveChunksOfTheirOwn) {
  const ArenaPlan plan = PlanArena({{5000, 0, 0}, {9000, 1, 1}, {100, 2, 2}, {5000, 1, 2}}, 4096);
  EXPECT_EQ(plan.places[0].chunk, plan.places[1].chunk);
  EXPECT_NE(plan.places[2].chunk, plan.places[1].chunk);
  EXPECT_NE(plan.places[3].chunk, plan.places[1].chunk);
  for (const size_t large : {0, 1, 3}) EXPECT_EQ(plan.places[large].offset, 0u);
  EXPECT_EQ(plan.total_bytes(), AlignUp(9000, kAlignment) + AlignUp(5000, kAlignment) + 256);
}

TEST(MemoryPlanTest, AnEmptyPlanTakesNothing) {
  const ArenaPlan plan = PlanArena({}, kHuge);
  EXPECT_EQ(plan.total_bytes(), 0u);
}

}  // namespace
}  // namespace forge
