// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/norm/batch_norm.h"
#include "ir/ops/spatial/conv.h"
#include "tests/ir/passes/pass_test.h"

namespace forge::ir {
namespace {

using ::testing::ElementsAre;

class FoldBatchNormTest : public PassTest {
 protected:
  static constexpr int64_t kChannels = 4;

  const Function& Folded(const Bindings& values = {}) {
    const Function& after =
        After(f_, [&](const Function& in, Function& out) { return Fold(m_, in, out); });
    ExpectSame(f_, after, {.values = values, .tolerance = 1e-5});
    return after;
  }
  void ExpectLeftAlone() { EXPECT_EQ(Ops(Folded()), Ops(f_)); }

  Value X(Dims shape = {2, 4, 5, 5}) { return f_.Argument("x", F32(std::move(shape))); }
  Value Weights(int64_t groups = 1) {
    return Constant(f_, "w", {kChannels, kChannels / groups, 3, 3});
  }
  Value Convolved(Value x, Value w, Value bias = {}, const Conv& op = {}) {
    return f_.Add(op, std::array{x, w, bias})[0];
  }
  // With a variance that is none of a batch that is constant.
  Value Norm(Value x, const BatchNorm& op = {}) {
    HostValue variance = Random(F32({kChannels}));
    for (int64_t i = 0; i < kChannels; ++i) variance.Set(i, 0.5 + std::abs(variance.f64(i)));
    return f_.Add(
        op, std::array{x, Constant(f_, "gamma", {kChannels}), Constant(f_, "beta", {kChannels}),
                       Constant(f_, "mean", {kChannels}), f_.Read(Add("variance", variance))})[0];
  }
};

TEST_F(FoldBatchNormTest, GoesIntoTheWeights) {
  f_.Return("y", Norm(Convolved(X(), Weights())));
  const Function& after = Folded();
  ASSERT_THAT(Ops(after), ElementsAre("conv"));
  EXPECT_EQ(after.nodes()[0].in.size(), 3u);
}

TEST_F(FoldBatchNormTest, NamesBoth) {
  Value convolved;
  {
    const Function::Scope scope(f_, From("Conv_0", "Conv"));
    convolved = Convolved(X(), Weights());
  }
  {
    const Function::Scope scope(f_, From("Norm_1", "BatchNormalization"));
    f_.Return("y", Norm(convolved));
  }
  EXPECT_EQ(Folded().nodes()[0].from->ToText(), "Conv_0 + Norm_1");
}

TEST_F(FoldBatchNormTest, GoesIntoTheBias) {
  f_.Return("y", Norm(Convolved(X(), Weights(), Constant(f_, "bias", {kChannels}))));
  EXPECT_THAT(Ops(Folded()), ElementsAre("conv"));
}

TEST_F(FoldBatchNormTest, GoesIntoTheWeightsOfASignal) {
  f_.Return("y", Norm(Convolved(X({2, 4, 9}), Constant(f_, "w", {kChannels, kChannels, 3}))));
  EXPECT_THAT(Ops(Folded()), ElementsAre("conv"));
}

TEST_F(FoldBatchNormTest, KeepsTheConvolutionsOwnAttributes) {
  const Conv op{.strides = {2, 1}, .dilations = {1, 2}, .padding = {1, 0, 2, 3}, .groups = 2};
  f_.Return("y", Norm(Convolved(X(), Weights(2), {}, op), {.epsilon = 0.25}));
  const Function& after = Folded();
  ASSERT_THAT(Ops(after), ElementsAre("conv"));
  EXPECT_EQ(after.nodes()[0].op, AnyOp(op));
}

TEST_F(FoldBatchNormTest, GoesIntoWeightsThatLoadComputes) {
  constexpr int64_t kWide = 32;  // more weights than are evaluated here
  const Value w = Constant(f_, "w", {kChannels, kWide, 6, 6});
  f_.Return("y", Norm(Convolved(X({1, kWide, 7, 7}), w)));
  EXPECT_THAT(Ops(Folded()), ElementsAre("mul", "conv"));
}

TEST_F(FoldBatchNormTest, TiedWeightsOfAnotherConvolutionStayAsTheyAre) {
  const Value x = X(), w = Weights();
  f_.Return("y", Norm(Convolved(x, w)));
  f_.Return("z", Convolved(x, w));
  EXPECT_THAT(Ops(Folded()), ElementsAre("conv", "conv"));
}

TEST_F(FoldBatchNormTest, OneAfterTheOtherGoIn) {
  const Value first = Norm(Convolved(X(), Weights()));
  f_.Return("y", Norm(Convolved(f_(Relu{}, {first}), Weights())));
  EXPECT_THAT(Ops(Folded()), ElementsAre("conv", "relu", "conv"));
}

TEST_F(FoldBatchNormTest, WorksWithOpenDimensions) {
  const SymbolRef n = m_.SymbolNamed("n");
  f_.Return("y", Norm(Convolved(X({Dim(n), 4, 5, 5}), Weights())));
  EXPECT_THAT(Ops(Folded({{n, 2}})), ElementsAre("conv"));
}

TEST_F(FoldBatchNormTest, AnAxisCountedFromTheEndIsTheSame) {
  f_.Return("y", Norm(Convolved(X(), Weights()), {.axis = -3}));
  EXPECT_THAT(Ops(Folded()), ElementsAre("conv"));
}

TEST_F(FoldBatchNormTest, NotWhereOthersReadTheConvolution) {
  const Value conv = Convolved(X(), Weights());
  f_.Return("y", Norm(conv));
  f_.Return("z", f_(Relu{}, {conv}));
  ExpectLeftAlone();
}

TEST_F(FoldBatchNormTest, NotWhereTheConvolutionIsAResult) {
  const Value conv = Convolved(X(), Weights());
  f_.Return("y", Norm(conv));
  f_.Return("conv", conv);
  ExpectLeftAlone();
}

TEST_F(FoldBatchNormTest, NotIntoWeightsThatAreNoConstants) {
  f_.Return("y", Norm(Convolved(X(), f_.Argument("w", F32({4, 4, 3, 3})))));
  ExpectLeftAlone();
}

TEST_F(FoldBatchNormTest, NotIntoABiasThatIsNoConstant) {
  f_.Return("y", Norm(Convolved(X(), Weights(), f_.Argument("bias", F32({kChannels})))));
  ExpectLeftAlone();
}

TEST_F(FoldBatchNormTest, NotWhereStatisticsAreNoConstants) {
  Variable* state = Add("mean", Random(F32({kChannels})), Variable::Role::kState);
  const Value one = Constant(f_, "one", {kChannels});
  f_.Return("y", f_.Add(BatchNorm{.epsilon = 4},
                        std::array{Convolved(X(), Weights()), one, one, f_.Read(state), one})[0]);
  ExpectLeftAlone();
}

TEST_F(FoldBatchNormTest, NotAlongAnotherAxis) {
  f_.Return("y", Norm(Convolved(X({2, 4, 6, 6}), Weights()), {.axis = 2}));
  ExpectLeftAlone();
}

TEST_F(FoldBatchNormTest, NotWithoutAConvolution) {
  f_.Return("y", Norm(f_(Relu{}, {X()})));
  ExpectLeftAlone();
}

}  // namespace
}  // namespace forge::ir
