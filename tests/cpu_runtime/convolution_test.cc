// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <limits>

#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/spatial/conv.h"
#include "tests/cpu_runtime/regions.h"

namespace forge::cpu {
namespace {

// A 3x3 convolution of 8 to 16 channels and its operands.
class ConvolutionTest : public testing::Test {
 protected:
  ConvolutionTest()
      : x_(region_.Argument(F32({2, 8, 6, 10}))), w_(region_.Argument(F32({16, 8, 3, 3}))) {
    in_ = {Random(DType::kF32, {2, 8, 6, 10}, 1), Random(DType::kF32, {16, 8, 3, 3}, 2)};
  }
  ir::Value Convolve() { return region_.body()(ir::Conv{.padding = {1, 1, 1, 1}}, {x_, w_}); }
  ir::Value Argument(std::vector<int64_t> shape) {
    in_.push_back(Random(DType::kF32, shape, in_.size() + 1));
    return region_.Argument(F32(ir::Dims(shape.begin(), shape.end())));
  }

  Region region_;
  ir::Value x_, w_;
  std::vector<ir::HostValue> in_;
};

TEST_F(ConvolutionTest, RunsOnTheLibraryInEitherLayout) {
  region_.Return(Convolve());
  EXPECT_THAT(ExpectAgrees(region_, in_), testing::StartsWith("dnnl:"));
  const RunOptions best = BestLayouts(region_, in_);
  ASSERT_EQ(best.in.size(), 2);
  ASSERT_TRUE(best.in[0] && best.out[0]);
  EXPECT_EQ(best.in[0]->name(), "permuted(0,2,3,1)");
  EXPECT_EQ(best.out[0]->name(), "permuted(0,2,3,1)");
  EXPECT_THAT(ExpectAgrees(region_, in_, best), testing::StartsWith("dnnl:"));
}

TEST_F(ConvolutionTest, KeepsNanAndInfinityThroughRelu) {
  region_.Return(region_.body()(ir::Relu{}, {Convolve()}));
  in_[0].Set(0, std::numeric_limits<double>::quiet_NaN());
  in_[0].Set(100, std::numeric_limits<double>::infinity());
  in_[0].Set(700, -std::numeric_limits<double>::infinity());
  ExpectAgrees(region_, in_);
  ExpectAgrees(region_, in_, BestLayouts(region_, in_));
}

TEST_F(ConvolutionTest, KeepsNanAndInfinityThroughEveryActivation) {
  in_[0].Set(0, std::numeric_limits<double>::quiet_NaN());
  in_[0].Set(100, std::numeric_limits<double>::infinity());
  in_[0].Set(700, -std::numeric_limits<double>::infinity());
  const ir::AnyOp activations[] = {ir::HardSwish{}, ir::HardSigmoid{}, ir::Silu{},
                                   ir::Gelu{},      ir::Gelu{true},    ir::Sigmoid{}};
  for (const ir::AnyOp& activation : activations) {
    SCOPED_TRACE(activation.ToText());
    Region region;
    const ir::Value x = region.Argument(F32({2, 8, 6, 10})),
                    w = region.Argument(F32({16, 8, 3, 3}));
    const ir::Value y = region.body()(ir::Conv{.padding = {1, 1, 1, 1}}, {x, w});
    region.Return(region.body()(activation, {y}));
    ExpectAgrees(region, in_);
    ExpectAgrees(region, in_, BestLayouts(region, in_));
  }
}

TEST_F(ConvolutionTest, TakesScaleResidualAndActivation) {
  const ir::Value scale = Argument({1, 16, 1, 1}), residual = Argument({2, 16, 6, 10});
  const ir::Value y = (Convolve() * scale + residual) * 0.5;
  region_.Return(region_.body()(ir::HardSwish{}, {y}));
  ExpectAgrees(region_, in_);
  ExpectAgrees(region_, in_, BestLayouts(region_, in_));
}

// A mask of columns, which no fast kernel of the library multiplies by.
TEST_F(ConvolutionTest, LeavesOutWhatBringsPlainLoops) {
  Region region;
  const ir::Value x = region.Argument(F32({1, 32, 60})), w = region.Argument(F32({48, 32, 3}));
  const ir::Value mask = region.Argument(F32({1, 1, 58})), rest = region.Argument(F32({1, 48, 58}));
  region.Return(region.body()(ir::Conv{}, {x, w}) * mask + rest);
  const std::vector<ir::HostValue> in = {
      Random(DType::kF32, {1, 32, 60}, 1), Random(DType::kF32, {48, 32, 3}, 2),
      Random(DType::kF32, {1, 1, 58}, 3), Random(DType::kF32, {1, 48, 58}, 4)};
  EXPECT_THAT(ExpectAgrees(region, in), testing::Not(testing::HasSubstr("ref")));
  EXPECT_THAT(ExpectAgrees(region, in, BestLayouts(region, in)),
              testing::Not(testing::HasSubstr("ref")));
}

TEST_F(ConvolutionTest, GivesItsOwnResultBesideTheActivated) {
  const ir::Value y = Convolve();
  region_.Return(y);
  region_.Return(region_.body()(ir::Clamp{-1, 1}, {y}));
  ExpectAgrees(region_, in_);
  ExpectAgrees(region_, in_, BestLayouts(region_, in_));
}

TEST_F(ConvolutionTest, GivesTwoResultsOfWhichNoneIsItsOwn) {
  const ir::Value y = Convolve();
  region_.Return(region_.body()(ir::Relu{}, {y}));
  region_.Return(y * y + 1.0);
  ExpectAgrees(region_, in_);
  ExpectAgrees(region_, in_, BestLayouts(region_, in_));
}

TEST_F(ConvolutionTest, GivesATruthValue) {
  region_.Return(Convolve() > 0.0);
  ExpectAgrees(region_, in_);
}

TEST(ConvolutionLayoutTest, TakesDepthwiseWithChannelsLast) {
  Region region;
  const ir::Value x = region.Argument(F32({1, 24, 7, 9})), w = region.Argument(F32({24, 1, 5, 5})),
                  b = region.Argument(F32({24}));
  region.Return(
      region.body()(ir::Conv{.strides = {2, 1}, .padding = {2, 2, 2, 2}, .groups = 24}, {x, w, b}));
  const std::vector<ir::HostValue> in = {Random(DType::kF32, {1, 24, 7, 9}, 1),
                                         Random(DType::kF32, {24, 1, 5, 5}, 2),
                                         Random(DType::kF32, {24}, 3)};
  ExpectAgrees(region, in);
  ExpectAgrees(region, in, BestLayouts(region, in));
}

TEST(ConvolutionLayoutTest, IsTheSameForAnImageOfOnePixel) {
  Region region;
  const ir::Value x = region.Argument(F32({1, 32, 1, 1})), w = region.Argument(F32({8, 32, 1, 1}));
  region.Return(region.body()(ir::Conv{}, {x, w}));
  const std::vector<ir::HostValue> in = {Random(DType::kF32, {1, 32, 1, 1}, 1),
                                         Random(DType::kF32, {8, 32, 1, 1}, 2)};
  const RunOptions best = BestLayouts(region, in);
  for (const ir::EncodingRef& out : best.out) EXPECT_EQ(out, nullptr);
  ExpectAgrees(region, in, best);
}

TEST(ConvolutionLayoutTest, ComputesHalvesAsFloats) {
  for (const DType t : {DType::kF16, DType::kBF16}) {
    Region region;
    const auto type = [&](ir::Dims d) { return ir::Type::Tensor(t, std::move(d)); };
    const ir::Value x = region.Argument(type({1, 8, 5, 5})),
                    w = region.Argument(type({4, 8, 3, 3})),
                    r = region.Argument(type({1, 4, 3, 3}));
    region.Return(region.body()(ir::Relu{}, {region.body()(ir::Conv{}, {x, w}) + r}));
    const std::vector<ir::HostValue> in = {Random(t, {1, 8, 5, 5}, 1), Random(t, {4, 8, 3, 3}, 2),
                                           Random(t, {1, 4, 3, 3}, 3)};
    const RunOptions best = BestLayouts(region, in);
    ASSERT_EQ(best.in.size(), 3);
    EXPECT_TRUE(best.in[0] && best.in[1]);
    ExpectAgrees(region, in, {}, t == DType::kF16 ? 2e-3 : 2e-2);
    ExpectAgrees(region, in, best, t == DType::kF16 ? 2e-3 : 2e-2);
  }
}

}  // namespace
}  // namespace forge::cpu
