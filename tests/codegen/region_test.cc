// SPDX-License-Identifier: Apache-2.0
// Fused regions: what they compute under each schedule, which one is chosen, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/schedules/gemm.h"
#include "codegen/tuning.h"
#include "ir/interpreter.h"
#include "ir/ops/attention.h"
#include "ir/ops/broadcast_to.h"
#include "ir/ops/case_inputs.h"
#include "ir/ops/concat.h"
#include "ir/ops/conv2d.h"
#include "ir/ops/elementwise.h"
#include "ir/ops/iota.h"
#include "ir/ops/layer_norm.h"
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

  // Of the program that Generate makes.
  int Launches() {
    const auto region = Region::Of(f_, caps_);
    EXPECT_TRUE(region.ok()) << region.status();
    const absl::StatusOr<Program> program = Generate(*region);
    EXPECT_TRUE(program.ok()) << Message(program.status());
    return program.ok() ? static_cast<int>(program->launches.size()) : 0;
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

// Sums of few terms may be wrong by less than large tiles are.
TEST_P(RegionTest, TilesOfAConvolutionStayWithinItsError) {
  Value x = Argument({1, 4, 160, 160}), w = Argument({16, 4, 3, 3});
  Return(f_(ir::Conv2d{}, {x, w}));
  const auto region = Region::Of(f_, caps_);
  const auto refusal = [&](int tile) {
    const auto choice = ParseChoice(*region, fmt::format("conv_winograd(tile={})", tile));
    return std::string(choice.status().message());
  };
  EXPECT_THAT(refusal(4), HasSubstr("not within the op's bound"));
  EXPECT_THAT(refusal(2), HasSubstr("the convolution is small"));
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

TEST_P(RegionTest, FewLongColumnsAreReducedInParts) {
  Value x = Argument({300, 36});
  Return(f_(ir::Relu{}, {f_(ir::Reduce{.kind = ir::ReduceKind::kMean, .axes = {0}}, {x})}));
  for (const int outputs : {1, 4})
    ExpectRightBy(fmt::format("reduce_outputs(outputs={}, parts=16)", outputs));
  f_ = ir::Function("region");
  Return(f_(ir::Reduce{.axes = {0}}, {Argument({100000, 64})}));
  EXPECT_EQ(Chosen(), "reduce_outputs");
  EXPECT_EQ(Launches(), caps_.runs_on_cpu ? 1 : 2);
}

TEST_P(RegionTest, FewLongRowsOfASoftmaxAreSplit) {
  Value x = Argument({2, 2500}), s = Argument({2500}), z = Argument({2, 1});
  Return(f_(ir::Mul{}, {f_(ir::Softmax{}, {f_(ir::Mul{}, {x, s})}), z}));
  EXPECT_NE(Chosen(), "softmax_split");
  const auto region = Region::Of(f_, caps_);
  if (caps_.max_operands > 4)
    ExpectRightBy("softmax_split(parts=16)");
  else
    EXPECT_THAT(Message(ParseChoice(*region, "softmax_split(parts=16)").status()),
                HasSubstr("no room for scratch"));
  f_ = ir::Function("region");
  const Value place = f_(ir::Iota{.dtype = DType::kI32, .count = 2100}, {});  // parts differ
  const Value column =
      f_(ir::Reshape{.shape = {2100, 1}}, {f_(ir::Cast{.to = DType::kF32}, {place})});
  Return(f_(ir::Softmax{.axis = 0}, {f_(ir::Add{}, {Argument({2100, 3}), column * 0.002})}));
  ExpectRightBy("softmax_split(parts=16)");
  f_ = ir::Function("region");
  Return(f_(ir::Softmax{}, {Argument({1, 1 << 22})}));
  EXPECT_EQ(Chosen() == "softmax_split", !caps_.runs_on_cpu);
  caps_.cores = 2;
  EXPECT_EQ(Chosen(), "softmax_split");
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

// On every device, by queries that share keys, the last ones of which some do not see.
TEST_P(RegionTest, AttentionOfLongHeadsIsOneKernel) {
  most_choices_ = 2;
  for (const DType t : {DType::kF32, DType::kF16})
    for (const int64_t head : {32, 128, 200, 256}) {
      SCOPED_TRACE(head);
      f_ = ir::Function("region");
      Value q = Argument({2, 9, head}, t), k = Argument({1, 19, head}, t);
      Value v = Argument({1, 19, head}, t);
      Return(f_(ir::Attention{.scale = 0.01, .causal = ir::Causal::kBottomRight}, {q, k, v}));
      ExpectRight();
      EXPECT_THAT(Chosen(), HasSubstr("attention"));
      EXPECT_EQ(Launches(), 1);
    }
}

TEST_P(RegionTest, AttentionInSlices) {
  if (caps_.runs_on_cpu) GTEST_SKIP() << "barriers are dear on this device";
  Value q = Argument({18, 76}), k = Argument({50, 76}), v = Argument({50, 70});
  if (caps_.max_operands > 4)
    Return(f_(ir::Attention{.softcap = 2}, {q, k, v, Argument({18, 50}, DType::kBool)}));
  else
    Return(f_(ir::Attention{.softcap = 2}, {q, k, v}));
  for (const int slice : {16, 32, 64})
    ExpectRightBy(fmt::format("attention_shared(rows=16, keys=16, slice={})", slice));
}

// A row's keys go to several workgroups: some of these see none of them, or masked ones alone.
TEST_P(RegionTest, AttentionOfFewRowsInParts) {
  if (caps_.runs_on_cpu) GTEST_SKIP() << "barriers are dear on this device";
  Value q = Argument({2, 3, 20}), k = Argument({1, 270, 20}), v = Argument({2, 270, 18});
  Return(f_(ir::Attention{.causal = ir::Causal::kBottomRight, .window_left = 60}, {q, k, v}));
  for (const int parts : {4, 16})
    ExpectRightBy(fmt::format("attention_shared(rows=8, keys=16, parts={})", parts).c_str());
  ExpectRightBy("attention_shared(rows=8, keys=16, slice=16, parts=4)");
}

TEST_P(RegionTest, AttentionOfOneRowIsSplitByItself) {
  Value q = Argument({8, 1, 64}, DType::kF16), k = Argument({2, 1, 2100, 64}, DType::kF16);
  Value v = Argument({2, 1, 2100, 64}, DType::kF16);
  most_choices_ = 1;
  Return(f_(ir::Attention{.scale = 0.01}, {f_(ir::Reshape{.shape = {2, 4, 1, 64}}, {q}), k, v}));
  ExpectRight();
  EXPECT_EQ(Launches(), caps_.runs_on_cpu ? 1 : 2);
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

TEST_P(RegionTest, NormBeforeAProduct) {
  caps_.max_operands = std::max<int64_t>(caps_.max_operands, 8);
  Value x = Argument({40, 64}), gamma = Argument({64}), beta = Argument({64});
  Value w = Argument({64, 48}), bias = Argument({48});
  Value norm = f_(ir::LayerNorm{}, {x, gamma, beta});
  Return(f_(ir::Relu{}, {f_(ir::Add{}, {f_(ir::MatMul{}, {norm, w}), bias})}));
  EXPECT_THAT(ExpectRight(), IsSupersetOf({Tiled(), std::string("matmul_simple")}));
  const auto region = Region::Of(f_, caps_);
  const absl::StatusOr<Program> program = Generate(*region);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(program->launches[0].kernel.name, HasSubstr("layer_norm_statistics"));
  EXPECT_EQ(program->scratch_bytes[0], 40 * 2 * 4);
}

// Of a matrix on its side, lanes lie along rows; parts of k are summed with the norm's scratch
// beside their own.
TEST_P(RegionTest, RootMeanSquareNormBeforeAProduct) {
  caps_.max_operands = std::max<int64_t>(caps_.max_operands, 8);
  const ir::LayerNorm norm{.epsilon = 1e-3, .subtract_mean = false};
  for (const bool on_its_side : {false, true}) {
    f_ = ir::Function("region");
    Value rows = f_(norm, {Argument(on_its_side ? Dims{2, 48, 20} : Dims{2, 18, 265})});
    Return(
        f_(ir::MatMul{.transpose_a = on_its_side}, {rows, Argument({on_its_side ? 48 : 265, 36})}));
    ExpectRight();
  }
}

TEST_P(RegionTest, RefusesANormWithoutRoomForItsScratch) {
  caps_.max_operands = 3;
  Value norm = f_(ir::LayerNorm{}, {Argument({40, 64})});
  Return(f_(ir::MatMul{}, {norm, Argument({64, 48})}));
  EXPECT_THAT(std::string(Refusal().message()), HasSubstr("no room for scratch"));
}

TEST_P(RegionTest, NormsPayWhereTilesAreFew) {
  const auto why = [&](Dims x, int64_t columns, ir::LayerNorm norm = {}) {
    f_ = ir::Function("region");
    Value rows = f_(norm, {Argument(x)});
    Return(f_(ir::MatMul{}, {rows, Argument({x.back(), columns})}));
    const auto region = Region::Of(f_, caps_);
    return NormPays(*region).text();
  };
  EXPECT_EQ(why({64, 512}, 32), "");
  EXPECT_THAT(why({4096, 512}, 512), HasSubstr("too many tiles"));
  EXPECT_EQ(why({4096, 512}, 256),
            caps_.runs_on_cpu ? "too many tiles of columns would normalise it again" : "");
  EXPECT_THAT(why({64, 512}, 256), HasSubstr(caps_.runs_on_cpu ? "too many tiles" : "caches"));
  EXPECT_THAT(why({8, 512, 512}, 512, {.axis = 1}), HasSubstr("not those of the norm"));
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
  Return(f_(ir::Conv2d{.padding = {1, 1, 1, 1}}, {x, w}));
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
INSTANTIATE_TEST_SUITE_P(Devices, PartsTest,
                         ::testing::Values(&testing::PoorestCaps, &testing::CpuCaps,
                                           &testing::GpuCaps, &testing::MatrixCaps),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Devices, HalvesTest,
                         ::testing::Values(&testing::PoorestCaps, &testing::CpuCaps,
                                           &testing::GpuCaps, &testing::MatrixCaps,
                                           &testing::MatrixElementCaps),
                         NameOf);

}  // namespace
}  // namespace forge::codegen
