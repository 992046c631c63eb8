// SPDX-License-Identifier: Apache-2.0
// Products and convolutions whose rows a reduction makes one of each: what they compute under each
// schedule, and where that pays.
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/norm/layer_norm.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/product/matmul_integer.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/ops/spatial/conv.h"
#include "tests/codegen/region_test.h"

namespace forge::codegen {
namespace {

class ReductionTest : public RegionTest {
 protected:
  ReductionTest() { most_choices_ = 6; }
  // The product of two arguments of a new region.
  Value Product(Dims a, Dims b, DType t = DType::kF32) {
    f_ = ir::Function("region");
    Value left = Argument(std::move(a), t), right = Argument(std::move(b), t);
    return f_(ir::MatMul{}, {left, right});
  }
  Value Number(double value) { return f_(ir::Fill{.value = value}, {}); }
  Value Reduce(Value v, ir::ReduceKind kind = ir::ReduceKind::kSum,
               std::vector<int64_t> axes = {-1}, bool keep_dims = true) {
    return f_(ir::Reduce{.kind = kind, .axes = std::move(axes), .keep_dims = keep_dims}, {v});
  }
  // Why the region is no region, or makes a worse kernel than its parts.
  std::string WhyNot() {
    const auto region = Region::Of(f_, caps_);
    return region.ok() ? ReductionPays(*region).text() : std::string(Message(region.status()));
  }
  int64_t Columns() const {  // of the widest tile
    return caps_.runs_on_cpu ? 32 : caps_.few_registers() ? 32 : 64;
  }
};

// Tiles are wider than rows, and elements far from what is not there.
TEST_P(ReductionTest, OfEveryKind) {
  for (const bool keep_dims : {true, false})
    for (const auto& [kind, scale, offset] : {std::tuple(ir::ReduceKind::kSum, 1.0, -500.0),
                                              {ir::ReduceKind::kMean, 1.0, 500.0},
                                              {ir::ReduceKind::kMax, 1.0, -500.0},
                                              {ir::ReduceKind::kMin, 1.0, 500.0},
                                              {ir::ReduceKind::kProd, 0.001, 1.0}}) {
      SCOPED_TRACE(offset);
      Value y = f_(ir::Mul{}, {Product({2, 37, 10}, {10, 22}), Number(scale)});
      Return(Reduce(f_(ir::Add{}, {y, Number(offset)}), kind, {2}, keep_dims));
      EXPECT_THAT(ExpectRight(), Contains(Tiled()));
      EXPECT_EQ(Chosen(), Tiled());
      EXPECT_EQ(Launches(), 1);
    }
}

TEST_P(ReductionTest, OfRowsOfAnyLengthUpToATile) {
  for (const int64_t n :
       {int64_t{1}, int64_t{4}, int64_t{7}, int64_t{16}, int64_t{20}, int64_t{29}, Columns()}) {
    SCOPED_TRACE(n);
    Return(Reduce(Product({35, 24}, {24, n}), ir::ReduceKind::kMax));
    ExpectRight();
    EXPECT_EQ(WhyNot(), "");
  }
  Return(Reduce(Product({35, 24}, {24, 2 * Columns()}), ir::ReduceKind::kMax));
  EXPECT_NE(WhyNot(), "");
}

TEST_P(ReductionTest, BetweenBiasActivationAndAScaleForEachRow) {
  caps_.max_operands = std::max<int64_t>(caps_.max_operands, 8);
  Value y = f_(ir::Add{}, {Product({3, 21, 36}, {36, 24}), Argument({24})});
  Value mean = Reduce(f_(ir::Relu{}, {y}), ir::ReduceKind::kMean, {-1}, false);
  Return(f_(ir::Mul{}, {f_(ir::Sqrt{}, {mean}), Argument({21})}));
  EXPECT_THAT(ExpectRight(), Contains(Tiled()));
}

TEST_P(ReductionTest, HalvesAreSummedAsFloats) {
  Value y = f_(ir::Add{}, {Product({33, 32}, {32, 30}, DType::kF16), Argument({30}, DType::kF16)});
  Return(Reduce(f_(ir::Cast{.to = DType::kF32}, {y})));
  EXPECT_THAT(ExpectRight(), Contains(Tiled()));
  Return(Reduce(Product({33, 32}, {32, 30}, DType::kF16), ir::ReduceKind::kMean));
  ExpectRight();
}

TEST_P(ReductionTest, OfTransposedMatrices) {
  Value a = Argument({2, 40, 33}), b = Argument({19, 40});
  Value y = f_(ir::MatMul{.transpose_a = true, .transpose_b = true}, {a, b});
  Return(Reduce(y, ir::ReduceKind::kMin));
  EXPECT_THAT(ExpectRight(), Contains(Tiled()));
}

TEST_P(ReductionTest, OfThePixelsOfAConvolution) {
  for (const int64_t taps : {1, 3})
    for (const bool keep_dims : {true, false}) {
      f_ = ir::Function("region");
      Value x = Argument({2, 16, 4, 6}), w = Argument({24, 8, taps, taps}), bias = Argument({24});
      const int64_t padding = taps / 2;
      const ir::Conv conv{.padding = {padding, padding, padding, padding}, .groups = 2};
      Value y = f_(ir::Relu{}, {f_(conv, {x, w, bias})});
      Return(Reduce(y, ir::ReduceKind::kMean, {2, 3}, keep_dims));
      EXPECT_THAT(ExpectRight(), Contains(Tiled()));
    }
}

TEST_P(ReductionTest, OfAProductOfNormalisedRows) {
  caps_.max_operands = std::max<int64_t>(caps_.max_operands, 8);
  Value rows = f_(ir::LayerNorm{}, {Argument({40, 64})});
  Return(Reduce(f_(ir::MatMul{}, {rows, Argument({64, 24})}), ir::ReduceKind::kMax));
  EXPECT_THAT(ExpectRight(), Contains(Tiled()));
  EXPECT_EQ(Launches(), 2);  // the first keeps the norm's statistics
}

TEST_P(ReductionTest, OfIntegers) {
  f_ = ir::Function("region");
  Value a = Argument({18, 36}, DType::kI8), b = Argument({36, 20}, DType::kI8);
  Return(Reduce(f_(ir::MatMulInteger{}, {a, b}), ir::ReduceKind::kMin));
  EXPECT_THAT(ExpectRight(), Contains(Tiled()));
}

// What slices of bytes pack into words, parts of rows need as they are; and lanes hand on words.
TEST_P(ReductionTest, OfIntegersInAnotherType) {
  for (const DType to : {DType::kU8, DType::kU32, DType::kI64, DType::kU64}) {
    SCOPED_TRACE(Name(to));
    f_ = ir::Function("region");
    const int64_t columns = BitWidth(to) == 64 ? 16 : Columns();
    Value a = Argument({66, 36}, DType::kU8), b = Argument({36, columns}, DType::kU8);
    Value y = f_(ir::Cast{.to = to}, {f_(ir::MatMulInteger{}, {a, b})});
    Return(Reduce(y, ir::ReduceKind::kMax));
    ExpectRight();
  }
}

TEST_P(ReductionTest, IsStoredInAnotherShape) {
  Value sums = Reduce(Product({4, 18, 20}, {20, 20}), ir::ReduceKind::kSum, {2}, false);
  Return(f_(ir::Reshape{.shape = {9, 8}}, {sums}));
  EXPECT_THAT(ExpectRight(), Contains(Tiled()));
}

TEST_P(ReductionTest, OfFewRowsHasAKernelWhereOthersWereMany) {
  const ir::Dim n(std::make_shared<ir::Symbol>(ir::Symbol{"n"}));
  f_ = ir::Function("region");
  Value a = f_.Argument("a", ir::Type::Tensor(DType::kF32, {n, 64})), b = Argument({64, 28});
  Return(Reduce(f_(ir::MatMul{}, {a, b})));
  EXPECT_EQ(WhyNot(), "");
  EXPECT_EQ(Chosen(), Tiled());
  for (const int64_t rows : {1, 3, 130}) {
    Return(Reduce(Product({rows, 64}, {64, 28})));
    ExpectRight();
    EXPECT_EQ(Chosen(), Tiled());
  }
}

TEST_P(ReductionTest, StaysApartWhereTilesHoldNoRows) {
  const auto why = [&](Value v, std::vector<int64_t> axes) {
    Return(Reduce(v, ir::ReduceKind::kSum, std::move(axes)));
    return WhyNot();
  };
  EXPECT_THAT(why(Product({64, 64}, {64, 200}), {1}), HasSubstr("rows of 200 are reduced"));
  EXPECT_THAT(why(Product({64, 64}, {64, 20}), {0}), HasSubstr("no row of the product"));
  EXPECT_THAT(why(Product({64, 64}, {64, 20}), {}), HasSubstr("no row of the product"));
  EXPECT_THAT(why(Product({2, 64, 64}, {64, 20}), {0, 2}), HasSubstr("no row of the product"));
  EXPECT_THAT(why(Product({64, 64}, {64, 0}), {1}), HasSubstr("rows may be empty"));
  Value image = (f_ = ir::Function("region"), Argument({1, 8, 6, 6}));
  EXPECT_THAT(why(f_(ir::LayerNorm{}, {image}), {3}),
              HasSubstr("no schedule takes layer_norm and"));
}

// A few tiles of a long product are shared among many workgroups, none of which has whole sums.
TEST_P(ReductionTest, StaysApartWhereTheProductAloneIsSharedOut) {
  Return(Reduce(Product({64, 2048}, {2048, 32})));
  EXPECT_EQ(WhyNot(), caps_.runs_on_cpu ? "" : "no workgroup has the whole sums of a row");
  Return(Reduce(Product({1, 2048}, {2048, 28})));
  EXPECT_THAT(WhyNot(), HasSubstr("is quicker for matmul"));
}

TEST_P(ReductionTest, NothingElseIsMadeOfTheProduct) {
  Value y = Product({20, 32}, {32, 20});
  Return(Reduce(y));
  Return(y);
  EXPECT_THAT(WhyNot(), HasSubstr("result y1 is not made of what reduce makes"));
  y = Product({20, 32}, {32, 20});
  Return(f_(ir::Sub{}, {y, Reduce(y)}));
  EXPECT_THAT(WhyNot(), HasSubstr("sub reads what is reduced"));
  y = Product({20, 32}, {32, 1});
  Return(f_(ir::Sub{}, {y, Reduce(y)}));
  EXPECT_THAT(WhyNot(), HasSubstr("sub reads what is reduced"));
  y = Product({20, 32}, {32, 20});
  Return(Reduce(y));
  Return(f_(ir::Reshape{.shape = {400}}, {y}));
  EXPECT_THAT(WhyNot(), HasSubstr("reshape reads what is reduced"));
  Return(Reduce(Reduce(Product({20, 32}, {32, 20})), ir::ReduceKind::kMax, {0}));
  EXPECT_THAT(WhyNot(), HasSubstr("matmul and reduce are two anchors"));
}

INSTANTIATE_TEST_SUITE_P(Devices, ReductionTest,
                         ::testing::Values(&testing::PoorestCaps, &testing::CpuCaps,
                                           &testing::GpuCaps),
                         NameOf);

}  // namespace
}  // namespace forge::codegen
