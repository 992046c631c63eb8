// SPDX-License-Identifier: Apache-2.0
// Fused regions: what they compute under each schedule, which one is chosen, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/tuning.h"
#include "ir/interpreter.h"
#include "ir/ops/attention.h"
#include "ir/ops/broadcast_to.h"
#include "ir/ops/case_inputs.h"
#include "ir/ops/concat.h"
#include "ir/ops/conv2d.h"
#include "ir/ops/elementwise.h"
#include "ir/ops/matmul.h"
#include "ir/ops/matmul_integer.h"
#include "ir/ops/pad.h"
#include "ir/ops/pool2d.h"
#include "ir/ops/reduce.h"
#include "ir/ops/reshape.h"
#include "ir/ops/slice.h"
#include "ir/ops/softmax.h"
#include "ir/ops/transpose.h"
#include "ir/scalar_math.h"
#include "tests/support/region_runner.h"

namespace forge::codegen {
namespace {

using ir::Dims;
using ir::Value;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

class RegionTest : public ::testing::TestWithParam<Caps (*)()> {
 protected:
  RegionTest() : caps_(GetParam()()) {}
  Value Argument(Dims shape, DType t = DType::kF32) {
    return f_.Argument(fmt::format("x{}", f_.arguments().size()),
                       ir::Type::Tensor(t, std::move(shape)));
  }
  void Return(Value v) { f_.Return(fmt::format("y{}", f_.results().size()), v); }

  // Runs the region under every schedule that fits, with its defaults and with the numbers that
  // its parameters list, and compares each result with the region's interpretation.
  //   result: names of the schedules that ran
  std::vector<std::string> ExpectRight() {
    std::vector<std::string> ran;
    EXPECT_TRUE(f_.status().ok()) << f_.status();
    const auto region = Region::Of(f_, caps_);
    EXPECT_TRUE(region.ok()) << region.status();
    if (!region.ok()) return ran;
    Interpret();
    for (const Choice& choice : ChoicesFor(*region, most_choices_)) {
      if (std::find(ran.begin(), ran.end(), choice.schedule->name) == ran.end())
        ran.emplace_back(choice.schedule->name);
      ExpectRightUnder(choice, *region);
    }
    EXPECT_THAT(ran, Not(IsEmpty()));
    return ran;
  }

  // The same under this choice alone.
  void ExpectRightBy(std::string_view choice) {
    const auto region = Region::Of(f_, caps_);
    ASSERT_TRUE(region.ok()) << region.status();
    const absl::StatusOr<Choice> parsed = ParseChoice(*region, choice);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    Interpret();
    ExpectRightUnder(*parsed, *region);
  }

  // The schedule that Generate takes.
  std::string Chosen() {
    const auto region = Region::Of(f_, caps_);
    return region.ok() ? CanGenerate(*region).text() : region.status().ToString();
  }

  // The schedule of large products, by what the device is quick at.
  std::string Tiled() const { return caps_.runs_on_cpu ? "matmul_shuffle" : "matmul_shared"; }

  absl::Status Refusal() {
    const auto region = Region::Of(f_, caps_);
    return region.status();
  }

  ir::Function f_{"region"};
  Caps caps_;
  size_t most_choices_ = 24;  // nearly all with one number changed

 private:
  void Interpret() {
    arguments_.clear();
    for (const ir::Function::Input& a : f_.arguments()) arguments_.push_back(Numbers(a.value));
    auto want = ir::Interpreter().Run(f_, Operands());
    ASSERT_TRUE(want.ok()) << want.status();
    want_ = std::move(want->results);
  }

  void ExpectRightUnder(const Choice& choice, const Region& region) {
    SCOPED_TRACE(choice.ToText());
    const auto got = testing::RunProgram(region, Generate(region, choice), Operands());
    ASSERT_TRUE(got.ok()) << got.status();
    for (size_t i = 0; i < got->size(); ++i) ExpectClose(want_[i], (*got)[i], Tolerance());
  }

  // Sums are rounded once where operands are f16, to its 11 bits.
  double Tolerance() const {
    const bool narrow = std::any_of(arguments_.begin(), arguments_.end(),
                                    [](const auto& a) { return a.dtype() == DType::kF16; });
    return narrow ? 1e-3 : 2e-6;
  }

  std::vector<const ir::HostValue*> Operands() const {
    std::vector<const ir::HostValue*> out;
    for (const ir::HostValue& v : arguments_) out.push_back(&v);
    return out;
  }
  ir::HostValue Numbers(uint32_t value) {
    const ir::Type& t = f_.type(value);
    auto v = ir::HostValue::Zeros(t.dtype(), ir::Constants(t.shape()));
    EXPECT_TRUE(v.ok());
    for (int64_t i = 0; i < v->elements(); ++i)
      v->Set(i, static_cast<double>((i * 37 + value * 11) % 101) / 25 - 2);
    return *v;
  }
  static void ExpectClose(const ir::HostValue& want, const ir::HostValue& got, double tolerance) {
    ASSERT_EQ(want.elements(), got.elements());
    double scale = 1;
    for (int64_t i = 0; i < want.elements(); ++i) scale = std::max(scale, std::abs(want.f64(i)));
    for (int64_t i = 0; i < want.elements(); ++i)
      ASSERT_NEAR(want.f64(i), got.f64(i), tolerance * scale) << "element " << i;
  }

  std::vector<ir::HostValue> arguments_, want_;
};

TEST_P(RegionTest, ConvolutionWithBiasActivationAndResidual) {
  Value x = Argument({2, 4, 6, 8}), w = Argument({17, 4, 3, 3}), bias = Argument({17});
  Value y = f_(ir::Conv2d{.padding = {1, 1, 1, 1}}, {x, w, bias});
  Value z = f_(ir::HardSwish{}, {y});
  if (caps_.max_operands > 4) z = f_(ir::Add{}, {z, Argument({2, 17, 6, 8})});
  Return(z);
  EXPECT_THAT(ExpectRight(), IsSupersetOf({Tiled(), std::string("conv_direct")}));
  EXPECT_EQ(Chosen(), Tiled());
}

TEST_P(RegionTest, ConvolutionInGroupsWithStridesDilationAndUnevenPadding) {
  Value x = Argument({1, 6, 13, 11}), w = Argument({36, 3, 3, 2});
  Return(f_(
      ir::Relu{},
      {f_(ir::Conv2d{.strides = {2, 1}, .dilations = {1, 3}, .padding = {2, 0, 1, 3}, .groups = 2},
          {x, w})}));
  EXPECT_THAT(ExpectRight(), IsSupersetOf({Tiled(), std::string("conv_direct")}));
  EXPECT_EQ(Chosen(), Tiled());
}

TEST_P(RegionTest, ConvolutionOfAnImageScaledForEachChannel) {
  Value x = Argument({1, 4, 5, 8}), s = Argument({1, 4, 1, 1}), w = Argument({16, 4, 3, 3});
  Return(f_(ir::Conv2d{.padding = {1, 1, 1, 1}}, {f_(ir::Mul{}, {x, s}), w}));
  EXPECT_THAT(ExpectRight(), IsSupersetOf({Tiled(), std::string("conv_direct")}));
}

TEST_P(RegionTest, ConvolutionPermutedAfterwards) {
  Value x = Argument({2, 4, 5, 8}), w = Argument({16, 4, 3, 3});
  Value y = f_(ir::Conv2d{.padding = {1, 1, 1, 1}}, {x, w});
  Return(f_(ir::Transpose{.permutation = {0, 2, 3, 1}}, {f_(ir::Relu{}, {y})}));
  EXPECT_THAT(ExpectRight(), IsSupersetOf({Tiled(), std::string("conv_direct")}));
}

TEST_P(RegionTest, SmallConvolutionIsDirect) {
  Value x = Argument({1, 2, 3, 4}), w = Argument({3, 2, 2, 2});
  Return(f_(ir::Conv2d{}, {x, w}));
  ExpectRight();
  EXPECT_EQ(Chosen(), "conv_direct");
}

TEST_P(RegionTest, PointwiseConvolutionScaledForEachChannel) {
  Value x = Argument({1, 16, 4, 12}), w = Argument({20, 16, 1, 1}), s = Argument({1, 20, 1, 1});
  Return(f_(ir::Mul{}, {s, f_(ir::Relu{}, {f_(ir::Conv2d{}, {x, w})})}));
  EXPECT_THAT(ExpectRight(),
              IsSupersetOf({Tiled(), std::string("matmul_simple"), std::string("conv_direct")}));
  EXPECT_EQ(Chosen(), Tiled());
}

TEST_P(RegionTest, DepthwiseConvolutionOfAPaddedImage) {
  Value x = Argument({1, 4, 5, 7}), w = Argument({4, 1, 3, 3});
  Value p = f_(ir::Pad{.before = {0, 0, 1, 1}, .after = {0, 0, 1, 2}, .value = 0.5}, {x});
  Return(f_(ir::Conv2d{.groups = 4}, {p, w}));
  EXPECT_THAT(ExpectRight(), IsSupersetOf({"conv_depthwise", "conv_direct"}));
  EXPECT_EQ(Chosen(), "conv_depthwise");
}

TEST_P(RegionTest, DepthwiseConvolutionInVectors) {
  Value x = Argument({2, 3, 6, 16}), w = Argument({3, 1, 5, 5}), s = Argument({1, 3, 1, 1});
  Value y = f_(ir::Conv2d{.padding = {2, 2, 2, 2}, .groups = 3}, {x, w});
  Return(f_(ir::Mul{}, {f_(ir::HardSwish{}, {y}), s}));
  ExpectRight();
  EXPECT_EQ(Chosen(), "conv_depthwise");
}

TEST_P(RegionTest, DepthwiseConvolutionWithStridesDilationAndSeveralOutputs) {
  Value x = Argument({1, 3, 11, 16}), w = Argument({6, 1, 3, 3}), bias = Argument({6});
  Return(
      f_(ir::Conv2d{.strides = {2, 2}, .dilations = {1, 2}, .padding = {1, 1, 2, 3}, .groups = 3},
         {x, w, bias}));
  ExpectRight();
  EXPECT_EQ(Chosen(), "conv_depthwise");
}

TEST_P(RegionTest, ConvolutionOfManyChannelsThroughTransforms) {
  Value x = Argument({1, 32, 29, 30}), w = Argument({36, 32, 3, 3}), bias = Argument({36});
  most_choices_ = 2;
  Return(f_(ir::Relu{}, {f_(ir::Conv2d{.padding = {1, 0, 1, 2}}, {x, w, bias})}));
  EXPECT_THAT(ExpectRight(), Contains("conv_winograd"));
}

TEST_P(RegionTest, ProductOfLargeMatrices) {
  Value a = Argument({40, 36}), b = Argument({36, 48}), c = Argument({48});
  Return(f_(ir::Add{}, {f_(ir::MatMul{}, {a, b}), c}));
  EXPECT_THAT(ExpectRight(), IsSupersetOf({Tiled(), std::string("matmul_simple")}));
  EXPECT_EQ(Chosen(), Tiled());
}

// Of k: 265 is no multiple of a slice, so the last piece is shorter.
TEST_P(RegionTest, FewTilesOfALongProductAreSummedInPieces) {
  Value a = Argument({2, 18, 265}), b = Argument({265, 36}), c = Argument({36});
  Return(f_(ir::Relu{}, {f_(ir::Add{}, {f_(ir::MatMul{}, {a, b}), c})}));
  ExpectRight();
  const auto region = Region::Of(f_, caps_);
  const absl::StatusOr<Program> program = Generate(*region);
  ASSERT_TRUE(program.ok()) << Message(program.status());
  EXPECT_EQ(program->launches.size(), caps_.runs_on_cpu ? 1u : 2u) << program->kernel;
}

TEST_P(RegionTest, ProductsWithoutElementsHaveKernels) {
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

TEST_P(RegionTest, WorkgroupsShareWholeTilesAndParts) {
  if (caps_.runs_on_cpu) GTEST_SKIP() << "workgroups share nothing on this device";
  Value a = Argument({70, 36}), b = Argument({36, 100});
  Return(f_(ir::Relu{}, {f_(ir::MatMul{}, {a, b})}));
  for (const int stages : {1, 2})
    ExpectRightBy(fmt::format(
        "matmul_shared(rows=16, columns=16, depth=8, workgroups=32, stages={}, dots=0)", stages));
}

TEST_P(RegionTest, ProductsOfBytesUseDotsWhereTheDeviceHasThem) {
  for (const auto& [ta, tb] : {std::pair(DType::kI8, DType::kI8),
                               {DType::kU8, DType::kU8},
                               {DType::kU8, DType::kI8},
                               {DType::kI8, DType::kU8}}) {
    for (const bool transposed : {false, true}) {
      caps_.int_dot_mixed_accelerated = caps_.int_dot_accelerated && !transposed;
      ir::Function f("region");
      const Value a = f.Argument("a", ir::Type::Tensor(ta, {20, 38}));
      const Dims shape = transposed ? Dims{36, 38} : Dims{38, 36};
      const Value b = f.Argument("b", ir::Type::Tensor(tb, shape));
      f.Return("y", f(ir::MatMulInteger{.transpose_b = transposed}, {a, b}));
      const auto region = Region::Of(f, caps_);
      ASSERT_TRUE(region.ok()) << Message(region.status());
      const absl::StatusOr<Program> program = Generate(*region);
      ASSERT_TRUE(program.ok()) << Message(program.status());
      const std::string text = ToText(program->launches[0].kernel);
      EXPECT_EQ(text.find("dot4") != text.npos,
                ta == tb ? caps_.int_dot_accelerated : caps_.int_dot_mixed_accelerated)
          << text;
    }
  }
}

TEST_P(RegionTest, RowsTimesAMatrixOfContiguousRows) {
  Value a = Argument({2, 3, 70}), b = Argument({2, 70, 132}), c = Argument({132});
  Return(f_(ir::Add{}, {f_(ir::MatMul{}, {a, b}), c}));
  EXPECT_THAT(ExpectRight(), IsSupersetOf({"matmul_columns", "matmul_simple"}));
  EXPECT_EQ(Chosen(), "matmul_columns");
}

TEST_P(RegionTest, RowsTimesAMatrixOfContiguousColumns) {
  Value a = Argument({2, 72}), b = Argument({67, 72}), c = Argument({67});
  Return(f_(ir::Relu{}, {f_(ir::Add{}, {f_(ir::MatMul{.transpose_b = true}, {a, b}), c})}));
  EXPECT_THAT(ExpectRight(), IsSupersetOf({"matmul_dots", "matmul_simple"}));
  EXPECT_EQ(Chosen(), "matmul_dots");
}

TEST_P(RegionTest, ManyColumnsReducedInStrips) {
  Value x = Argument({70, 1024});
  Return(f_(ir::Reduce{.kind = ir::ReduceKind::kMean, .axes = {0}}, {x}));
  ExpectRight();
  EXPECT_EQ(Chosen(), "reduce_outputs");
}

TEST_P(RegionTest, ShortRowsStayInRegisters) {
  Value x = Argument({5, 24}), s = Argument({24});
  Return(f_(ir::Softmax{}, {f_(ir::Mul{}, {x, s})}));
  ExpectRight();
}

TEST_P(RegionTest, ColumnsOfASoftmaxSideBySide) {
  Value x = Argument({3, 6, 16});
  Return(f_(ir::Softmax{.axis = 1}, {x}));
  ExpectRight();
}

// Operands of f16, which some devices multiply as matrices.
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
  Return(f_(ir::Relu{}, {f_(ir::Conv2d{.padding = {1, 1, 1, 1}}, {x, w, bias})}));
  ExpectRight();
  ExpectMatrices();
}

TEST_P(RegionTest, WithoutShufflesSoftwareDevicesDoWithoutTiles) {
  caps_.runs_on_cpu = true;
  caps_.subgroup_shuffle = false;
  Value x = Argument({1, 16, 4, 12}), w = Argument({16, 16, 3, 3});
  Return(f_(ir::Conv2d{.padding = {1, 1, 1, 1}}, {x, w}));
  EXPECT_THAT(ExpectRight(), ElementsAre("conv_direct"));
}

TEST_P(RegionTest, ProductOfTransposedAndSlicedOperands) {
  Value a = Argument({8, 5}), b = Argument({20, 12});
  Value at = f_(ir::Transpose{.permutation = {1, 0}}, {a});
  Value bs = f_(ir::Slice{.begin = {2}, .end = {10}, .axes = {0}}, {b});
  Return(f_(ir::MatMul{}, {at, bs}));
  ExpectRight();
}

TEST_P(RegionTest, ResultReshapedAndTransposed) {
  Value a = Argument({6, 8}), b = Argument({8, 20}), c = Argument({5, 1});
  Value y = f_(ir::Reshape{.shape = {2, 3, 4, 5}}, {f_(ir::MatMul{}, {a, b})});
  Value t = f_(ir::Transpose{.permutation = {0, 2, 3, 1}}, {y});
  Return(f_(ir::Add{}, {t, c}));
  ExpectRight();
}

TEST_P(RegionTest, ResultSplitAtWholeVectors) {
  Value a = Argument({6, 8}), b = Argument({8, 20});
  Value y = f_(ir::Relu{}, {f_(ir::MatMul{}, {a, b})});
  Return(f_(ir::Slice{.begin = {0}, .end = {8}, .axes = {1}}, {y}));
  Value rest = f_(ir::Slice{.begin = {8}, .end = {20}, .axes = {1}}, {y});
  Return(f_(ir::Transpose{.permutation = {1, 0}}, {rest}));
  ExpectRight();
}

TEST_P(RegionTest, PartsOfAResultBetweenVectorsAndOfOneRow) {
  Value a = Argument({6, 8}), b = Argument({8, 20});
  Value y = f_(ir::MatMul{}, {a, b});
  Value part = f_(ir::Slice{.begin = {3}, .end = {14}, .axes = {1}}, {y});
  Return(f_(ir::Reshape{.shape = {3, 2, 11}}, {part}));
  Value row = f_(ir::Slice{.begin = {4}, .end = {5}, .axes = {0}}, {y});
  Return(f_(ir::Reshape{.shape = {20}}, {row}));
  ExpectRight();
}

TEST_P(RegionTest, ConvolutionSplitByChannels) {
  Value x = Argument({1, 4, 9, 9}), w = Argument({8, 4, 3, 3});
  Value y = f_(ir::Conv2d{.padding = {1, 1, 1, 1}}, {x, w});
  Return(f_(ir::Slice{.begin = {0}, .end = {3}, .axes = {1}}, {y}));
  Return(f_(ir::Slice{.begin = {3}, .end = {8}, .axes = {1}}, {y}));
  ExpectRight();
}

TEST_P(RegionTest, SeveralResults) {
  Value x = Argument({1, 2, 9, 9});
  Value y = f_(ir::Pool2d{.kernel = {3, 3}, .strides = {2, 2}}, {x});
  Return(y);
  Return(f_(ir::Relu{}, {f_(ir::Reshape{.shape = {2, 16}}, {y})}));
  ExpectRight();
}

TEST_P(RegionTest, ReductionOfAProduct) {
  Value x = Argument({3, 40}), y = Argument({40});
  Value sum = f_(ir::Reduce{.kind = ir::ReduceKind::kMean, .axes = {1}, .keep_dims = false},
                 {f_(ir::Mul{}, {x, y})});
  Return(f_(ir::Sqrt{}, {f_(ir::Mul{}, {sum, sum})}));
  ExpectRight();
}

TEST_P(RegionTest, LongRowsInPartsAndWhole) {
  Value x = Argument({2, 1 << 18});
  Value sum = f_(ir::Reduce{.kind = ir::ReduceKind::kMax, .axes = {1}}, {x});
  Return(f_(ir::Relu{}, {sum}));
  ExpectRight();
}

TEST_P(RegionTest, SoftmaxOfScaledScores) {
  Value x = Argument({3, 300}), scale = Argument({});
  Return(f_(ir::Softmax{}, {f_(ir::Mul{}, {x, scale})}));
  ExpectRight();
}

// Heads split off by a transpose that the loads do, and joined again by one that the stores do.
TEST_P(RegionTest, AttentionOfSplitHeads) {
  const auto heads = [&](int64_t rows) {
    Value x = Argument({2, rows, 24});
    Value split = f_(ir::Reshape{.shape = {2, rows, 3, 8}}, {x});
    return f_(ir::Transpose{.permutation = {0, 2, 1, 3}}, {split});
  };
  Value y = f_(ir::Attention{}, {heads(21), heads(70), heads(70)});
  y = f_(ir::Transpose{.permutation = {0, 2, 1, 3}}, {y});
  Return(f_(ir::Reshape{.shape = {2, 21, 24}}, {y}));
  ExpectRight();
}

// The mask is made where it is read.
TEST_P(RegionTest, AttentionUnderAPaddingMask) {
  if (caps_.max_operands < 5) return;
  Value q = Argument({2, 18, 16}), k = Argument({2, 36, 16}), v = Argument({2, 36, 20});
  Value kept = f_(ir::Cast{.to = DType::kF32}, {Argument({2, 1, 36}, DType::kBool)});
  Value mask = (kept - 1.0) * 1e9;
  Return(f_(ir::Attention{.scale = 0.25}, {q, k, v, mask}));
  ExpectRight();
}

TEST_P(RegionTest, TurnedInBlocks) {
  Value x = Argument({2, 64, 32}), y = Argument({32, 64}), row = Argument({32, 1});
  Value turned = f_(ir::Transpose{.permutation = {0, 2, 1}}, {x});
  Return(f_(ir::Relu{}, {f_(ir::Add{}, {f_(ir::Mul{}, {turned, row}), y})}));
  EXPECT_THAT(ExpectRight(), IsSupersetOf({"transpose", "elementwise"}));
  EXPECT_EQ(Chosen(), "transpose");
}

TEST_P(RegionTest, HeadsTurnedInOrderAreNotTurned) {
  Value x = Argument({2, 16, 4, 8});
  Return(f_(ir::Transpose{.permutation = {0, 2, 1, 3}}, {x}));
  ExpectRight();
  EXPECT_EQ(Chosen(), "elementwise");
}

TEST_P(RegionTest, ElementsFromEverywhere) {
  Value a = Argument({4, 6}), b = Argument({3, 6}), c = Argument({7, 1});
  Value joined = f_(ir::Concat{.axis = 0}, {a, b});
  Value flipped = f_(ir::Slice{.begin = {-1}, .end = {-100}, .axes = {1}, .steps = {-1}}, {joined});
  Return(f_(ir::Mul{}, {flipped, c}));
  ExpectRight();
}

TEST_P(RegionTest, JoinedInBlocksOfVectors) {
  Value a = Argument({3, 8}), b = Argument({3, 4});
  Return(f_(ir::Relu{}, {f_(ir::Concat{.axis = 1}, {a, b})}));
  ExpectRight();
}

TEST_P(RegionTest, NarrowTypesBetweenWideOnes) {
  Value x = Argument({37});
  Value narrow = f_(ir::Cast{.to = DType::kF16}, {x});
  Value small = f_(ir::Cast{.to = DType::kI8}, {f_(ir::Mul{}, {narrow, narrow})});
  Return(f_(ir::Cast{.to = DType::kF32}, {f_(ir::Mul{}, {small, small})}));
  ExpectRight();
}

TEST_P(RegionTest, MoreWorkgroupsThanOneAxisHolds) {
  caps_.max_grid = 3;
  Value x = Argument({5, 7, 31}), y = Argument({7, 1});
  Return(f_(ir::Add{}, {x, y}));
  ExpectRight();
}

TEST_P(RegionTest, RefusesTwoAnchors) {
  Value a = Argument({4, 4}), b = Argument({4, 4});
  Return(f_(ir::Softmax{}, {f_(ir::MatMul{}, {a, b})}));
  EXPECT_THAT(std::string(Refusal().message()), HasSubstr("matmul and softmax are two anchors"));
}

TEST_P(RegionTest, RefusesToRepeatTheAnchor) {
  Value x = Argument({4, 5});
  Value mean = f_(ir::Reduce{.kind = ir::ReduceKind::kMean, .axes = {1}}, {x});
  Return(f_(ir::Sub{}, {x, mean}));
  EXPECT_THAT(std::string(Refusal().message()), HasSubstr("repeats the anchor's elements"));
}

TEST_P(RegionTest, RefusesTheAnchorAtTwoPlaces) {
  Value a = Argument({4, 4}), b = Argument({4, 4});
  Value y = f_(ir::MatMul{}, {a, b});
  Return(f_(ir::Add{}, {y, f_(ir::Transpose{.permutation = {1, 0}}, {y})}));
  EXPECT_THAT(std::string(Refusal().message()), HasSubstr("two places"));
}

TEST_P(RegionTest, RefusesElementWiseOpsOfAPart) {
  Value a = Argument({4, 4}), b = Argument({4, 4});
  Value part = f_(ir::Slice{.begin = {1}, .end = {3}, .axes = {0}}, {f_(ir::MatMul{}, {a, b})});
  Return(f_(ir::Relu{}, {part}));
  EXPECT_THAT(std::string(Refusal().message()), HasSubstr("relu follows a part"));
}

TEST_P(RegionTest, RefusesToPadTheResult) {
  Value a = Argument({4, 4}), b = Argument({4, 4});
  Return(f_(ir::Pad{.before = {1, 0}, .after = {0, 0}}, {f_(ir::MatMul{}, {a, b})}));
  EXPECT_THAT(std::string(Refusal().message()), HasSubstr("pad after the anchor"));
}

TEST_P(RegionTest, RefusesMoreOperandsThanCanBeBound) {
  caps_.max_operands = 4;
  Value sum = Argument({8});
  for (int i = 0; i < 3; ++i) sum = f_(ir::Add{}, {sum, Argument({8})});
  Return(sum);
  EXPECT_THAT(std::string(Refusal().message()), HasSubstr("one kernel binds 4"));
}

std::string NameOf(const ::testing::TestParamInfo<Caps (*)()>& info) {
  const Caps caps = info.param();
  if (caps.matrix_elements) return "matrix_elements";
  if (!caps.matrices.empty()) return "matrices";
  return caps.runs_on_cpu ? "cpu" : caps.f64 ? "gpu" : "poorest";
}

INSTANTIATE_TEST_SUITE_P(Devices, RegionTest,
                         ::testing::Values(&testing::PoorestCaps, &testing::CpuCaps,
                                           &testing::GpuCaps),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Devices, HalvesTest,
                         ::testing::Values(&testing::PoorestCaps, &testing::CpuCaps,
                                           &testing::GpuCaps, &testing::MatrixCaps,
                                           &testing::MatrixElementCaps),
                         NameOf);

}  // namespace
}  // namespace forge::codegen
