// SPDX-License-Identifier: Apache-2.0
// Regions around convolutions and products: what they compute under each schedule, and which one is
// chosen.
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/movement/pad.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/product/attention.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/product/matmul_integer.h"
#include "ir/ops/spatial/conv.h"
#include "ir/ops/spatial/conv_integer.h"
#include "tests/codegen/region_test.h"

namespace forge::codegen {
namespace {

class ProductTest : public RegionTest {};

TEST_P(ProductTest, ConvolutionWithBiasActivationAndResidual) {
  Value x = Argument({2, 4, 6, 8}), w = Argument({17, 4, 3, 3}), bias = Argument({17});
  Value y = f_(ir::Conv{.padding = {1, 1, 1, 1}}, {x, w, bias});
  Value z = f_(ir::HardSwish{}, {y});
  if (caps_.max_operands > 4) z = f_(ir::Add{}, {z, Argument({2, 17, 6, 8})});
  Return(z);
  EXPECT_THAT(ExpectRight(), IsSupersetOf({Tiled(), std::string("conv_direct")}));
  EXPECT_EQ(Chosen(), Tiled());
}

TEST_P(ProductTest, ConvolutionInGroupsWithStridesDilationAndUnevenPadding) {
  Value x = Argument({1, 6, 13, 11}), w = Argument({36, 3, 3, 2});
  Return(
      f_(ir::Relu{},
         {f_(ir::Conv{.strides = {2, 1}, .dilations = {1, 3}, .padding = {2, 0, 1, 3}, .groups = 2},
             {x, w})}));
  EXPECT_THAT(ExpectRight(), IsSupersetOf({Tiled(), std::string("conv_direct")}));
  EXPECT_EQ(Chosen(), Tiled());
}

TEST_P(ProductTest, ConvolutionOfASignal) {
  Value x = Argument({2, 12, 80}), w = Argument({36, 6, 3}), bias = Argument({36});
  Value y = f_(ir::Conv{.padding = {1, 1}, .groups = 2}, {x, w, bias});
  Return(f_(ir::Relu{}, {y}));
  EXPECT_THAT(ExpectRight(), IsSupersetOf({Tiled(), std::string("conv_direct")}));
  EXPECT_EQ(Chosen(), Tiled());
  ExpectRightBy("conv_direct(channels=2, columns=4)");
  const auto region = Region::Of(f_, caps_);
  EXPECT_THAT(std::string(ParseChoice(*region, "conv_direct(rows=2)").status().message()),
              HasSubstr("one spatial axis"));
}

TEST_P(ProductTest, ConvolutionOfAVolume) {
  Value x = Argument({1, 4, 3, 5, 8}), w = Argument({18, 4, 2, 3, 3});
  const ir::Conv conv{.strides = {1, 2, 1}, .dilations = {2, 1, 1}, .padding = {1, 0, 1, 0, 2, 1}};
  Return(f_(ir::HardSwish{}, {f_(conv, {x, w})}));
  EXPECT_THAT(ExpectRight(), IsSupersetOf({Tiled(), std::string("conv_direct")}));
  EXPECT_EQ(Chosen(), Tiled());
  ExpectRightBy("conv_direct(channels=2, rows=2, columns=4)");
}

TEST_P(ProductTest, DepthwiseConvolutionOfASignal) {
  Return(f_(ir::Conv{.padding = {2, 2}, .groups = 3}, {Argument({2, 3, 16}), Argument({3, 1, 5})}));
  ExpectRight();
  EXPECT_EQ(Chosen(), "conv_depthwise");
}

TEST_P(ProductTest, DepthwiseConvolutionOfAVolume) {
  const ir::Conv conv{.strides = {2, 1, 1}, .padding = {1, 1, 1, 1, 1, 1}, .groups = 2};
  Return(f_(conv, {Argument({1, 2, 4, 6, 8}), Argument({4, 1, 3, 3, 3})}));
  ExpectRight();
  EXPECT_EQ(Chosen(), "conv_depthwise");
}

TEST_P(ProductTest, ConvolutionOfAnImageScaledForEachChannel) {
  Value x = Argument({1, 4, 5, 8}), s = Argument({1, 4, 1, 1}), w = Argument({16, 4, 3, 3});
  Return(f_(ir::Conv{.padding = {1, 1, 1, 1}}, {f_(ir::Mul{}, {x, s}), w}));
  EXPECT_THAT(ExpectRight(), IsSupersetOf({Tiled(), std::string("conv_direct")}));
}

// Groups read factors that no cache holds less often; what is computed stays.
TEST_P(ProductTest, ProductInGroupsOfTiles) {
  caps_.cache_bytes = 1 << 15;
  Return(f_(ir::MatMul{}, {Argument({512, 16}), Argument({16, 320})}));
  const auto region = Region::Of(f_, caps_);
  ASSERT_TRUE(region.ok()) << region.status();
  const std::string choice = DefaultChoice(*region)->ToText();
  EXPECT_THAT(choice, Not(HasSubstr("group=1)")));
  ExpectRightBy(choice);
  EXPECT_FALSE(ParseChoice(*region, "matmul_shared(workgroups=32, group=4)").ok());
  EXPECT_FALSE(ParseChoice(*region, "matmul_shuffle(shared=32, group=3)").ok());
}

TEST_P(ProductTest, ConvolutionPermutedAfterwards) {
  Value x = Argument({2, 4, 5, 8}), w = Argument({16, 4, 3, 3});
  Value y = f_(ir::Conv{.padding = {1, 1, 1, 1}}, {x, w});
  Return(f_(ir::Transpose{.permutation = {0, 2, 3, 1}}, {f_(ir::Relu{}, {y})}));
  EXPECT_THAT(ExpectRight(), IsSupersetOf({Tiled(), std::string("conv_direct")}));
}

TEST_P(ProductTest, SmallConvolutionIsDirect) {
  Value x = Argument({1, 2, 3, 4}), w = Argument({3, 2, 2, 2});
  Return(f_(ir::Conv{}, {x, w}));
  ExpectRight();
  EXPECT_EQ(Chosen(), "conv_direct");
}

TEST_P(ProductTest, PointwiseConvolutionScaledForEachChannel) {
  Value x = Argument({1, 16, 4, 12}), w = Argument({20, 16, 1, 1}), s = Argument({1, 20, 1, 1});
  Return(f_(ir::Mul{}, {s, f_(ir::Relu{}, {f_(ir::Conv{}, {x, w})})}));
  EXPECT_THAT(ExpectRight(),
              IsSupersetOf({Tiled(), std::string("matmul_simple"), std::string("conv_direct")}));
  EXPECT_EQ(Chosen(), Tiled());
}

TEST_P(ProductTest, DepthwiseConvolutionOfAPaddedImage) {
  Value x = Argument({1, 4, 5, 7}), w = Argument({4, 1, 3, 3});
  Value p = f_(ir::Pad{.before = {0, 0, 1, 1}, .after = {0, 0, 1, 2}, .value = 0.5}, {x});
  Return(f_(ir::Conv{.groups = 4}, {p, w}));
  EXPECT_THAT(ExpectRight(), IsSupersetOf({"conv_depthwise", "conv_direct"}));
  EXPECT_EQ(Chosen(), "conv_depthwise");
}

TEST_P(ProductTest, DepthwiseConvolutionInVectors) {
  Value x = Argument({2, 3, 6, 16}), w = Argument({3, 1, 5, 5}), s = Argument({1, 3, 1, 1});
  Value y = f_(ir::Conv{.padding = {2, 2, 2, 2}, .groups = 3}, {x, w});
  Return(f_(ir::Mul{}, {f_(ir::HardSwish{}, {y}), s}));
  ExpectRight();
  EXPECT_EQ(Chosen(), "conv_depthwise");
}

TEST_P(ProductTest, DepthwiseConvolutionWithStridesDilationAndSeveralOutputs) {
  Value x = Argument({1, 3, 11, 16}), w = Argument({6, 1, 3, 3}), bias = Argument({6});
  Return(f_(ir::Conv{.strides = {2, 2}, .dilations = {1, 2}, .padding = {1, 1, 2, 3}, .groups = 3},
            {x, w, bias}));
  ExpectRight();
  EXPECT_EQ(Chosen(), "conv_depthwise");
}

TEST_P(ProductTest, ConvolutionOfManyChannelsThroughTransforms) {
  Value x = Argument({1, 32, 29, 30}), w = Argument({36, 32, 3, 3}), bias = Argument({36});
  most_choices_ = 2;
  Return(f_(ir::Relu{}, {f_(ir::Conv{.padding = {1, 0, 1, 2}}, {x, w, bias})}));
  EXPECT_THAT(ExpectRight(), Contains("conv_winograd"));
}

// Sums of few terms may be wrong by less than large tiles are.
TEST_P(ProductTest, TilesOfAConvolutionStayWithinItsError) {
  Value x = Argument({1, 4, 160, 160}), w = Argument({16, 4, 3, 3});
  Return(f_(ir::Conv{}, {x, w}));
  const auto region = Region::Of(f_, caps_);
  const auto refusal = [&](int tile) {
    const auto choice = ParseChoice(*region, fmt::format("conv_winograd(tile={})", tile));
    return std::string(choice.status().message());
  };
  EXPECT_THAT(refusal(4), HasSubstr("not within the op's bound"));
  EXPECT_THAT(refusal(2), HasSubstr("the convolution is small"));
}

TEST_P(ProductTest, ProductOfLargeMatrices) {
  Value a = Argument({40, 36}), b = Argument({36, 48}), c = Argument({48});
  Return(f_(ir::Add{}, {f_(ir::MatMul{}, {a, b}), c}));
  EXPECT_THAT(ExpectRight(), IsSupersetOf({Tiled(), std::string("matmul_simple")}));
  EXPECT_EQ(Chosen(), Tiled());
}

// Of k: 265 is no multiple of a slice, so the last piece is shorter.
TEST_P(ProductTest, FewTilesOfALongProductAreSummedInPieces) {
  Value a = Argument({2, 18, 265}), b = Argument({265, 36}), c = Argument({36});
  Return(f_(ir::Relu{}, {f_(ir::Add{}, {f_(ir::MatMul{}, {a, b}), c})}));
  ExpectRight();
  EXPECT_EQ(Launches(), caps_.runs_on_cpu ? 1 : 2) << Chosen();
}

TEST_P(ProductTest, ProductsWithoutElementsHaveKernels) {
  const ir::Dim n(std::make_shared<ir::Symbol>(ir::Symbol{"n"}));
  ir::Function symbolic{"region"};
  const Value x = symbolic.Argument("x", ir::Type::Tensor(DType::kF32, {n, 0}));
  const Value w = symbolic.Argument("w", ir::Type::Tensor(DType::kF32, {0, 64}));
  symbolic.Return("y", symbolic(ir::MatMul{}, {x, w}));
  const auto region = Region::Of(symbolic, caps_);
  ASSERT_TRUE(region.ok()) << region.status();
  EXPECT_TRUE(CanGenerate(*region));
  Value a = Argument({0, 64, 640}), b = Argument({640, 64});
  Return(f_(ir::MatMul{}, {a, b}));
  ExpectRight();
}

TEST_P(ProductTest, WorkgroupsShareWholeTilesAndParts) {
  if (caps_.runs_on_cpu) GTEST_SKIP() << "workgroups share nothing on this device";
  Value a = Argument({70, 36}), b = Argument({36, 100});
  Return(f_(ir::Relu{}, {f_(ir::MatMul{}, {a, b})}));
  for (const int stages : {1, 2})
    ExpectRightBy(fmt::format(
        "matmul_shared(rows=16, columns=16, depth=8, workgroups=32, stages={}, dots=0)", stages));
}

TEST_P(ProductTest, ColumnsTakeStepsThatDivideTheSum) {
  Value a = Argument({1, 301}), b = Argument({301, 320});
  Return(f_(ir::MatMul{}, {a, b}));
  most_choices_ = 60;
  EXPECT_THAT(ExpectRight(), IsSupersetOf({"matmul_columns"}));
}

TEST_P(ProductTest, ProductsOfBytesUseDotsWhereTheDeviceHasThem) {
  const auto kernel = [&](DType ta, DType tb, bool transposed) {
    f_ = ir::Function("region");
    const Value a = Argument({20, 38}, ta);
    const Value b = Argument(transposed ? Dims{36, 38} : Dims{38, 36}, tb);
    Return(f_(ir::MatMulInteger{.transpose_b = transposed}, {a, b}));
    return ToText(Generated().launches.at(0).kernel);
  };
  // Each with the units that serve it, as bits: of signed, of unsigned and of mixed bytes.
  const std::tuple<DType, DType, int> products[] = {{DType::kI8, DType::kI8, 0b101},
                                                    {DType::kU8, DType::kU8, 0b010},
                                                    {DType::kU8, DType::kI8, 0b100},
                                                    {DType::kI8, DType::kU8, 0b100}};
  for (int units = 0; units < (caps_.int_dot ? 8 : 1); ++units) {
    caps_.int_dot_signed_accelerated = (units & 0b001) != 0;
    caps_.int_dot_unsigned_accelerated = (units & 0b010) != 0;
    caps_.int_dot_mixed_accelerated = (units & 0b100) != 0;
    for (const auto& [ta, tb, serve] : products)
      for (const bool transposed : {false, true}) {
        const std::string text = kernel(ta, tb, transposed);
        EXPECT_EQ(text.find("dot4") != text.npos, (units & serve) != 0) << units << "\n" << text;
      }
  }
}

TEST_P(ProductTest, ConvolutionsOfBytesAreProductsWhereDotsAreQuick) {
  const ir::ConvInteger conv{.strides = {1, 2}, .dilations = {2, 1}, .groups = 2};
  const Value x = Argument({2, 24, 8, 14}, DType::kU8), w = Argument({36, 12, 3, 3}, DType::kI8);
  Return(f_(conv, {x, w}));
  caps_.int_dot_mixed_accelerated = false;
  EXPECT_THAT(Chosen(), HasSubstr("no schedule takes conv_integer"));
  caps_.int_dot = caps_.int_dot_mixed_accelerated = true;
  EXPECT_THAT(ExpectRight(), Contains(Tiled()));
  EXPECT_EQ(ToText(Generated().launches.at(0).kernel).find("dot4") != std::string::npos,
            Tiled() == "matmul_shared");
}

// A column of products would fill most of a tile with nothing.
TEST_P(ProductTest, ConvolutionsOfBytesToFewChannelsAreWrittenOut) {
  caps_.int_dot_signed_accelerated = true;
  const Value x = Argument({1, 8, 5, 6}, DType::kI8), w = Argument({8, 1, 3, 3}, DType::kI8);
  Return(f_(ir::ConvInteger{.groups = 8}, {x, w}));
  EXPECT_THAT(Chosen(), HasSubstr("no schedule takes conv_integer"));
}

class HalvesTest : public RegionTest {
 protected:
  HalvesTest() { most_choices_ = 8; }  // the machine is slow at matrices
  void ExpectMatrices() { EXPECT_EQ(Chosen() == "matmul_matrix", !caps_.matrices.empty()); }
};

TEST_P(HalvesTest, WithBiasAndActivation) {
  Value a = Argument({2, 40, 36}, DType::kF16), b = Argument({36, 24}, DType::kF16);
  Value c = Argument({24}, DType::kF16);
  Value y = f_(ir::Relu{}, {f_(ir::Add{}, {f_(ir::MatMul{}, {a, b}), c})});
  Return(f_(ir::Cast{.to = DType::kF32}, {y}));
  ExpectRight();
  ExpectMatrices();
}

TEST_P(HalvesTest, TransposedAndOfOddSizes) {
  Value a = Argument({19, 33}, DType::kF16), b = Argument({21, 19}, DType::kF16);
  Return(f_(ir::MatMul{.transpose_a = true, .transpose_b = true}, {a, b}));
  ExpectRight();
  ExpectMatrices();
}

TEST_P(HalvesTest, OfALongProductInPieces) {
  Value a = Argument({16, 260}, DType::kF16), b = Argument({260, 20}, DType::kF16);
  Value c = Argument({20}, DType::kF16);
  Return(f_(ir::Add{}, {f_(ir::MatMul{}, {a, b}), c}));
  ExpectRight();
  ExpectMatrices();
}

TEST_P(HalvesTest, ConvolutionWithBias) {
  Value x = Argument({2, 4, 6, 8}, DType::kF16), w = Argument({20, 4, 3, 3}, DType::kF16);
  Value bias = Argument({20}, DType::kF16);
  Return(f_(ir::Relu{}, {f_(ir::Conv{.padding = {1, 1, 1, 1}}, {x, w, bias})}));
  ExpectRight();
  ExpectMatrices();
}

// Products by matrices that a workgroup holds.
class WorkgroupMatrixTest : public RegionTest {
 protected:
  WorkgroupMatrixTest() { most_choices_ = 4; }
  // Of `m` x `k` by `k` x `n`, each operand as it lies or transposed.
  void Multiply(int64_t m, int64_t k, int64_t n, ir::MatMul op, DType t = DType::kF16) {
    const Value a = Argument(op.transpose_a ? Dims{k, m} : Dims{m, k}, t);
    const Value b = Argument(op.transpose_b ? Dims{n, k} : Dims{k, n}, t);
    Return(f_(ir::Cast{.to = DType::kF32}, {f_(op, {a, b})}));
  }
  void ExpectWorkgroup() {
    ExpectRightBy("matmul_workgroup");
    EXPECT_EQ(Chosen(), "matmul_workgroup");
  }
};

TEST_P(WorkgroupMatrixTest, OfEachLayout) {
  for (const bool a : {false, true})
    for (const bool b : {false, true}) {
      SCOPED_TRACE(fmt::format("{} {}", a, b));
      f_ = ir::Function{"region"};
      Multiply(136, 72, 264, {a, b});
      ExpectWorkgroup();
    }
}

TEST_P(WorkgroupMatrixTest, OfFewerStagesSmallerTilesAndSharedSteps) {
  Multiply(136, 520, 136, {});
  for (const char* choice :
       {"matmul_workgroup(stages=3)", "matmul_workgroup(groups=1, columns=64, stages=6)",
        "matmul_workgroup(groups=1, columns=64, workgroups=64)", "matmul_matrix(stages=3)",
        "matmul_matrix(stages=4, depth=1)"}) {
    SCOPED_TRACE(choice);
    ExpectRightBy(choice);
  }
}

TEST_P(WorkgroupMatrixTest, OfBfloats) {
  Multiply(72, 136, 104, {.transpose_b = true}, DType::kBF16);
  ExpectWorkgroup();
}

TEST_P(WorkgroupMatrixTest, OfBatchesWithBias) {
  const Value a = Argument({3, 72, 64}, DType::kF16), b = Argument({64, 72}, DType::kF16);
  const Value bias = Argument({72}, DType::kF16);
  Return(f_(ir::Relu{}, {f_(ir::Add{}, {f_(ir::MatMul{}, {a, b}), bias})}));
  ExpectWorkgroup();
}

// What is computed of an operand is not there to be copied, and 20 bytes of a row are no pieces.
TEST_P(WorkgroupMatrixTest, TakesOperandsInPiecesOnly) {
  const Value a = Argument({72, 64}, DType::kF16), b = Argument({64, 72}, DType::kF16);
  Return(f_(ir::MatMul{}, {f_(ir::Relu{}, {a}), b}));
  EXPECT_EQ(Chosen(), "matmul_matrix");
  f_ = ir::Function{"region"};
  Multiply(72, 74, 72, {});
  EXPECT_EQ(Chosen(), "matmul_matrix");
}

class MatrixAttentionTest : public RegionTest {
 protected:
  MatrixAttentionTest() { most_choices_ = 4; }
  Value Halves(Dims shape) { return Argument(std::move(shape), DType::kF16); }
  void ExpectMatrices(std::string_view choice = "attention_matrix") {
    ExpectRightBy(choice);
    EXPECT_EQ(Chosen(), "attention_matrix");
  }
};

TEST_P(MatrixAttentionTest, OfUnevenRowsAndKeysUnderEachMask) {
  const ir::Attention ops[] = {{},
                               {.softcap = 2},
                               {.causal = ir::Causal::kTopLeft},
                               {.causal = ir::Causal::kBottomRight, .window_left = 20}};
  for (const ir::Attention& op : ops)
    for (const std::optional<DType> mask :
         {std::optional<DType>(), {DType::kBool}, {DType::kF32}}) {
      f_ = ir::Function{"region"};
      const Value q = Halves({2, 70, 32}), k = Halves({2, 75, 32}), v = Halves({2, 75, 24});
      Values operands = {q, k, v};
      if (mask) operands.push_back(Argument({70, 75}, *mask));
      Return(f_(ir::Cast{.to = DType::kF32}, {f_.Add(op, operands)[0]}));
      ExpectMatrices();
    }
}

TEST_P(MatrixAttentionTest, OfSharedHeadsInBlocksOfEachSize) {
  const Value q = Halves({1, 4, 33, 64}), k = Halves({1, 1, 100, 64}), v = Halves({1, 1, 100, 64});
  Return(f_(ir::Attention{}, {q, k, v}));
  for (const char* choice :
       {"attention_matrix(subgroups=2, keys=16)", "attention_matrix(subgroups=2, keys=32)",
        "attention_matrix(subgroups=4, keys=64)", "attention_matrix(subgroups=8, keys=128)"})
    ExpectMatrices(choice);
}

TEST_P(MatrixAttentionTest, WithTheLogarithmsOfItsSums) {
  const Value q = Halves({2, 40, 16}), k = Halves({2, 40, 16}), v = Halves({2, 40, 16});
  const Values results =
      f_.Add(ir::Attention{.causal = ir::Causal::kTopLeft, .log_sums = true}, Values{q, k, v});
  for (const Value r : results) Return(r);
  ExpectMatrices();
}

TEST_P(MatrixAttentionTest, TakesWholeMatricesInPiecesOnly) {
  for (const auto& [rows, head] : {std::pair(40, 20), {40, 24}, {8, 32}}) {
    f_ = ir::Function{"region"};
    const Value x = Halves({rows, head});
    Return(f_(ir::Attention{}, {x, x, x}));
    EXPECT_EQ(Chosen(), "attention_shared") << rows << " " << head;
  }
  f_ = ir::Function{"region"};
  const Value x = Halves({40, 32});
  Return(f_(ir::Attention{}, {f_(ir::Relu{}, {x}), x, x}));
  EXPECT_EQ(Chosen(), "attention_shared");
}

TEST_P(ProductTest, WithoutShufflesSoftwareDevicesDoWithoutTiles) {
  caps_.runs_on_cpu = true;
  caps_.subgroup_shuffle = false;
  Value x = Argument({1, 16, 4, 12}), w = Argument({16, 16, 3, 3});
  Return(f_(ir::Conv{.padding = {1, 1, 1, 1}}, {x, w}));
  EXPECT_THAT(ExpectRight(), ElementsAre("conv_direct"));
}

INSTANTIATE_TEST_SUITE_P(Devices, ProductTest,
                         ::testing::Values(&testing::PoorestCaps, &testing::CpuCaps,
                                           &testing::GpuCaps),
                         NameOf);

INSTANTIATE_TEST_SUITE_P(Devices, HalvesTest,
                         ::testing::Values(&testing::PoorestCaps, &testing::CpuCaps,
                                           &testing::GpuCaps, &testing::MatrixCaps,
                                           &testing::MatrixElementCaps, &testing::GroupMatrixCaps),
                         NameOf);

INSTANTIATE_TEST_SUITE_P(Devices, MatrixAttentionTest, ::testing::Values(&testing::GroupMatrixCaps),
                         NameOf);

INSTANTIATE_TEST_SUITE_P(Devices, WorkgroupMatrixTest, ::testing::Values(&testing::GroupMatrixCaps),
                         NameOf);

}  // namespace
}  // namespace forge::codegen
