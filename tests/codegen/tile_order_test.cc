// SPDX-License-Identifier: Apache-2.0
// Workgroups take the tiles of large products in an order that reads less from memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <set>

#include "codegen/schedules/matmul/gemm.h"
#include "codegen/schedules/tuning.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/spatial/conv.h"
#include "tests/support/region_runner.h"

namespace forge::codegen {
namespace {

constexpr int64_t kMiB = 1 << 20;
using Grid = std::array<int64_t, 3>;

ir::Types Square(int64_t n) {
  return {ir::Type::Tensor(DType::kF32, {n, n}), ir::Type::Tensor(DType::kF32, {n, n})};
}

Grid TileOf(int64_t tile, const Grid& grid, int64_t group) {
  const ir::Dims at = TileAt(tile, {grid[0], grid[1], grid[2]}, group);
  return {at[0].constant(), at[1].constant(), at[2].constant()};
}

// Bytes from memory where tiles are multiplied one after the other: each reads a row of the first
// factor's panels and one of the second's, of `panel` bytes, and a cache keeps those used last.
int64_t Traffic(const Grid& grid, int64_t group, int64_t panel, int64_t cache) {
  std::list<std::pair<int, int64_t>> kept;
  int64_t bytes = 0;
  const auto read = [&](int factor, int64_t at) {
    const auto found = std::find(kept.begin(), kept.end(), std::pair(factor, at));
    if (found == kept.end())
      bytes += panel;
    else
      kept.erase(found);
    kept.emplace_front(factor, at);
    if (static_cast<int64_t>(kept.size()) * panel > cache) kept.pop_back();
  };
  for (int64_t tile = 0; tile < grid[0] * grid[1] * grid[2]; ++tile) {
    const Grid at = TileOf(tile, grid, group);
    read(0, at[1]);
    read(1, at[2]);
  }
  return bytes;
}

// The group of a product whose tiles have 64 rows.
int64_t GroupOf(const ir::AnyOp& op, const ir::Types& in, int64_t cache) {
  const auto f = testing::FunctionOf(op, in);
  Caps caps = testing::GpuCaps();
  caps.cache_bytes = cache;
  const auto region = Region::Of(*f, caps);
  const auto g = GemmOf(*region);
  return GroupFor(*region, *g, g->a, 64);
}

TEST(TileOrderTest, TakesEachTileOnce) {
  const Grid grid = {3, 16, 5};
  for (const int64_t group : {1, 4, 16}) {
    std::set<Grid> seen;
    for (int64_t tile = 0; tile < 3 * 16 * 5; ++tile) {
      const Grid at = TileOf(tile, grid, group);
      EXPECT_TRUE(at[0] < 3 && at[1] < 16 && at[2] < 5);
      seen.insert(at);
    }
    EXPECT_EQ(seen.size(), 3u * 16 * 5) << group;
  }
  EXPECT_EQ(TileOf(1, grid, 1), (Grid{0, 0, 1}));
  EXPECT_EQ(TileOf(1, grid, 4), (Grid{0, 1, 0}));
}

TEST(TileOrderTest, GroupsReadLessFromMemory) {
  for (const int64_t cache : {2 * kMiB, 8 * kMiB}) {
    const int64_t group = GroupOf(ir::MatMul{}, Square(2048), cache), panel = 64 * 2048 * 4;
    const Grid grid = {1, 32, 32};
    EXPECT_GT(group, 1);
    EXPECT_LE(Traffic(grid, group, panel, cache) * group * 3 / 4, Traffic(grid, 1, panel, cache))
        << cache;
  }
}

TEST(TileOrderTest, KeepsRowsWhereACacheHoldsAllOrIsNotKnown) {
  EXPECT_EQ(GroupOf(ir::MatMul{}, Square(2048), 0), 1);
  EXPECT_EQ(GroupOf(ir::MatMul{}, Square(2048), 64 * kMiB), 1);
  EXPECT_EQ(GroupOf(ir::MatMul{}, Square(1024), 8 * kMiB), 1);
  EXPECT_EQ(GroupOf(ir::MatMul{}, Square(64 * 31), 8 * kMiB), 1) << "31 rows of tiles";
}

// Windows of 3 x 3 overlap: an image of 1 MiB is 9 as a matrix.
TEST(TileOrderTest, CountsAnImageOnce) {
  const auto image = [](int64_t side) {
    return ir::Types{ir::Type::Tensor(DType::kF32, {1, 64, side, side}),
                     ir::Type::Tensor(DType::kF32, {256, 64, 3, 3})};
  };
  const ir::Conv conv{.padding = {1, 1, 1, 1}};
  EXPECT_EQ(GroupOf(conv, image(64), 2 * kMiB), 1);
  EXPECT_GT(GroupOf(conv, image(128), 2 * kMiB), 1);
}

// Of every schedule that has such tiles; results are those of any order.
TEST(TileOrderTest, DefaultsFollowTheDevicesCache) {
  for (const auto& profile : {&testing::CpuCaps, &testing::GpuCaps, &testing::PoorestCaps}) {
    Caps caps = profile();
    const auto chosen = [&](int64_t cache) {
      caps.cache_bytes = cache;
      const auto f = testing::FunctionOf(ir::MatMul{}, Square(2048));
      return DefaultChoice(*Region::Of(*f, caps))->ToText();
    };
    EXPECT_NE(chosen(0).find("group=1)"), std::string::npos) << chosen(0);
    EXPECT_NE(chosen(64 * kMiB).find("group=1)"), std::string::npos) << chosen(64 * kMiB);
    EXPECT_EQ(chosen(8 * kMiB).find("group=1)"), std::string::npos) << chosen(8 * kMiB);
  }
}

}  // namespace
}  // namespace forge::codegen
