// SPDX-License-Identifier: Apache-2.0
// Regions with operands and results that one storage buffer cannot hold.
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/ops/reduction/softmax.h"
#include "ir/ops/spatial/conv.h"
#include "tests/codegen/region_test.h"

namespace forge::codegen {
namespace {

// Operands and results that one storage buffer cannot hold.
class PartsTest : public RegionTest {
 protected:
  PartsTest() {
    caps_.max_operand_bytes = 512;
    caps_.max_operands = 30;
    most_choices_ = 12;
  }
  int PartsOf(int operand) const {
    const auto region = Region::Of(f_, caps_);
    return region.ok() ? region->PartsOf(operand) : 0;
  }
};

TEST_P(PartsTest, ProductOfOperandsAndResultBeyondTheRange) {
  Value a = Argument({20, 36}), b = Argument({36, 28}), c = Argument({28});
  Return(f_(ir::Relu{}, {f_(ir::Add{}, {f_(ir::MatMul{}, {a, b}), c})}));
  EXPECT_THAT(ExpectRight(), Contains(Tiled()));
  EXPECT_THAT((std::vector{PartsOf(0), PartsOf(1), PartsOf(2), PartsOf(3)}),
              ElementsAre(6, 8, 1, 5));
}

TEST_P(PartsTest, NarrowElementsInParts) {
  Value a = Argument({9, 64}, DType::kF16), b = Argument({64, 10}, DType::kF16);
  Return(f_(ir::MatMul{}, {f_(ir::Neg{}, {a}), b}));
  ExpectRight();
}

TEST_P(PartsTest, ConvolutionInParts) {
  Value x = Argument({1, 4, 9, 12}), w = Argument({16, 4, 3, 3});
  Return(f_(ir::Conv{.padding = {1, 1, 1, 1}}, {x, w}));
  ExpectRight();
}

TEST_P(PartsTest, RowsInParts) {
  Return(f_(ir::Softmax{.axis = -1}, {Argument({5, 260})}));
  ExpectRight();
}

TEST_P(PartsTest, ALongRowInParts) {
  Return(f_(ir::Reduce{.kind = ir::ReduceKind::kMean, .axes = {1}}, {Argument({1, 3000})}));
  ExpectRight();
}

TEST_P(PartsTest, RefusesScratchBeyondTheRange) {
  Return(f_(ir::Reduce{.kind = ir::ReduceKind::kMean, .axes = {1}}, {Argument({3, 1200})}));
  const auto region = Region::Of(f_, caps_);
  ASSERT_TRUE(region.ok()) << region.status();
  const auto split = ParseChoice(*region, "reduce_rows(parts=64)");
  EXPECT_THAT(std::string(split.status().message()), HasSubstr("too much scratch"));
}

TEST_P(PartsTest, RefusesMorePartsThanCanBeBound) {
  caps_.max_operands = 8;
  Return(f_(ir::Relu{}, {Argument({640})}));
  EXPECT_EQ(Refusal().message(),
            "10 operands and results, 5 of them parts of x0 of at most 512 bytes, 5 of them parts "
            "of y0 of at most 512 bytes, one kernel binds 8");
}

TEST_P(PartsTest, RefusesWhatAllStorageBuffersCannotHold) {
  caps_.max_operands = 8;
  Return(f_(ir::Relu{}, {Argument({1025})}));
  EXPECT_EQ(Refusal().message(), "x0: its 4100 bytes are more than 8 storage buffers of 512 hold");
}

INSTANTIATE_TEST_SUITE_P(Devices, PartsTest,
                         ::testing::Values(&testing::PoorestCaps, &testing::CpuCaps,
                                           &testing::GpuCaps, &testing::MatrixCaps),
                         NameOf);

}  // namespace
}  // namespace forge::codegen
