// SPDX-License-Identifier: Apache-2.0
// Windows of the interior and of the edge have bodies of their own, where that pays.
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/movement/pad.h"
#include "ir/ops/spatial/conv.h"
#include "ir/ops/spatial/pool.h"
#include "tests/codegen/region_test.h"

namespace forge::codegen {
namespace {

// Instructions of a block and of those within it.
int64_t CountIn(const Kernel& k, BlockId block, std::initializer_list<Code> codes) {
  int64_t n = 0;
  for (const Inst& i : k.blocks[block].insts) {
    n += IsOneOf(i.code, codes) ? 1 : 0;
    for (uint32_t b = 0; b < i.block_count; ++b) n += CountIn(k, i.block + b, codes);
  }
  return n;
}

class InteriorTest : public RegionTest {
 protected:
  // The condition between interior and edge; null where there is one body for both.
  const Inst* SplitOf(const Kernel& k) {
    for (const Inst& i : k.blocks[0].insts)
      if (i.code == Code::kIf && CountIn(k, i.block + 1, {Code::kLoad}) > 0) return &i;
    return nullptr;
  }
  void ExpectSplit(bool expected) {
    const Program program = Generated();
    const Kernel& k = program.launches.at(0).kernel;
    const Inst* split = SplitOf(k);
    ASSERT_EQ(split != nullptr, expected) << ToText(k);
    if (!expected) return;
    const auto tests = {Code::kSelect, Code::kEq, Code::kLt, Code::kLe, Code::kMin, Code::kMax};
    // Whether a workgroup's last invocations have a place is the one thing that is asked.
    EXPECT_LE(CountIn(k, split->block, tests), 1) << ToText(k);
    EXPECT_GT(CountIn(k, split->block + 1, tests), 8);
    const Val condition{nullptr, k.ArgsOf(*split)[0]};
    EXPECT_NE(k.values[condition.id].uniform, Uniform::kInvocation);
  }
  // Processors run both sides of a condition.
  bool MaySplit() const { return !caps_.runs_on_cpu; }
};

TEST_P(InteriorTest, DepthwiseConvolution) {
  Value x = Argument({2, 3, 40, 80}), w = Argument({3, 1, 3, 3});
  Return(f_(ir::Conv{.padding = {1, 1, 1, 1}, .groups = 3}, {x, w}));
  ExpectSplit(MaySplit());
  most_choices_ = 6;
  ExpectRight();
}

TEST_P(InteriorTest, DepthwiseConvolutionWithStridesDilationAndPartialTiles) {
  Value x = Argument({1, 2, 75, 99}), w = Argument({2, 1, 3, 3}), bias = Argument({2});
  Return(f_(ir::Conv{.strides = {2, 1}, .dilations = {1, 3}, .padding = {2, 0, 1, 5}, .groups = 2},
            {x, w, bias}));
  most_choices_ = 8;
  EXPECT_THAT(ExpectRight(), Contains("conv_depthwise"));
}

TEST_P(InteriorTest, DepthwiseConvolutionOfAPaddedImage) {
  Value x = Argument({1, 2, 40, 80}), w = Argument({2, 1, 3, 3});
  Value p = f_(ir::Pad{.before = {0, 0, 1, 2}, .after = {0, 0, 3, 2}, .value = 0.5}, {x});
  Return(f_(ir::Conv{.groups = 2}, {p, w}));
  ExpectSplit(MaySplit());
  most_choices_ = 6;
  ExpectRight();
}

TEST_P(InteriorTest, MeanOfWindows) {
  Value x = Argument({2, 2, 33, 35});
  Return(
      f_(ir::Pool{.kind = ir::PoolKind::kAverage, .kernel = {3, 3}, .padding = {1, 1, 1, 1}}, {x}));
  ExpectSplit(MaySplit());
  ExpectRight();
}

TEST_P(InteriorTest, MeanOfWindowsWithStridesDilationAndPaddingThatCounts) {
  Value x = Argument({1, 3, 60, 47});
  Return(f_(ir::Pool{.kind = ir::PoolKind::kAverage,
                     .kernel = {3, 2},
                     .strides = {2, 1},
                     .dilations = {1, 3},
                     .padding = {2, 1, 0, 2},
                     .ceil_mode = true,
                     .count_include_pad = true},
            {x}));
  ExpectRight();
}

// The edge is most of a small image.
TEST_P(InteriorTest, SmallImagesHaveOneBody) {
  Value x = Argument({1, 64, 5, 5}), w = Argument({64, 1, 5, 5});
  Return(f_(ir::Conv{.padding = {2, 2, 2, 2}, .groups = 64}, {x, w}));
  ExpectSplit(false);
}

// Neither is there where nothing is tested.
TEST_P(InteriorTest, WindowsWithoutPaddingHaveOneBody) {
  Value x = Argument({1, 4, 42, 82}), w = Argument({4, 1, 3, 3});
  Return(f_(ir::Conv{.groups = 4}, {x, w}));
  ExpectSplit(false);
}

INSTANTIATE_TEST_SUITE_P(Devices, InteriorTest,
                         ::testing::Values(&testing::PoorestCaps, &testing::CpuCaps,
                                           &testing::GpuCaps),
                         NameOf);

}  // namespace
}  // namespace forge::codegen
