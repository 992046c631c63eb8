// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/elementwise.h"
#include "ir/ops/fill.h"
#include "ir/scalar_math.h"
#include "tests/ir/passes/pass_test.h"

namespace forge::ir {
namespace {

using ::testing::ElementsAre;

class RecogniseTest : public PassTest {
 protected:
  // x * clamp(x + 3, 0, 6) / 6 is rounded more often than the op.
  static constexpr double kTolerance = 1e-6;

  Value X(Dims shape = {2, 5}) { return x_ = f_.Argument("x", F32(std::move(shape))); }
  Value Clamped(Value v, double low = 0, double high = 6) {
    return f_(Clamp{.low = low, .high = high}, {v});
  }
  void ExpectHardSwish(Value y) {
    f_.Return("y", y);
    const Function& after = After(f_, Recognise);
    EXPECT_THAT(Ops(after), ElementsAre("hard_swish"));
    ExpectSame(f_, after, {.tolerance = kTolerance});
  }
  void ExpectLeftAlone(Value y) {
    f_.Return("y", y);
    const Function& after = After(f_, Recognise);
    EXPECT_EQ(Ops(after), Ops(f_));
    ExpectSame(f_, after);
  }

  Value x_;
};

TEST_F(RecogniseTest, HardSwishDividedLast) {
  X();
  ExpectHardSwish(x_ * Clamped(x_ + 3.0) / 6.0);
}

TEST_F(RecogniseTest, HardSwishWithEveryOperandTheOtherWayRound) {
  X();
  ExpectHardSwish(Clamped(3.0 + x_) * x_ / 6.0);
}

TEST_F(RecogniseTest, HardSwishWithTheGateDividedFirst) {
  X();
  ExpectHardSwish(x_ * (Clamped(x_ + 3.0) / 6.0));
}

TEST_F(RecogniseTest, HardSwishWithTheGateDividedFirstAndOnTheLeft) {
  X();
  ExpectHardSwish(Clamped(x_ + 3.0) / 6.0 * x_);
}

TEST_F(RecogniseTest, HardSwishMultipliedByASixthLast) {
  X();
  ExpectHardSwish(x_ * Clamped(x_ + 3.0) * static_cast<double>(1.0f / 6));
}

TEST_F(RecogniseTest, HardSwishMultipliedByASixthFirst) {
  X();
  ExpectHardSwish(x_ * (static_cast<double>(1.0f / 6) * Clamped(x_ + 3.0)));
}

TEST_F(RecogniseTest, HardSwishOfAHardSigmoid) {
  X();
  ExpectHardSwish(x_ * f_(HardSigmoid{.alpha = 1.0f / 6, .beta = 0.5}, {x_}));
}

TEST_F(RecogniseTest, HardSwishWithOpenDimensions) {
  const SymbolRef n = m_.SymbolNamed("n");
  X({Dim(n), 3});
  f_.Return("y", x_ * Clamped(x_ + 3.0) / 6.0);
  const Function& after = After(f_, Recognise);
  EXPECT_THAT(Ops(after), ElementsAre("hard_swish"));
  ExpectSame(f_, after, {.values = {{n, 4}}, .tolerance = kTolerance});
}

TEST_F(RecogniseTest, KeepsPartsOfTheIdiomThatOthersRead) {
  X();
  const Value gate = Clamped(x_ + 3.0);
  f_.Return("gate", gate);
  f_.Return("y", x_ * gate / 6.0);
  const Function& after = After(f_, Recognise);
  EXPECT_THAT(Ops(after), ElementsAre("fill", "add", "clamp", "hard_swish"));
  ExpectSame(f_, after, {.tolerance = kTolerance});
}

TEST_F(RecogniseTest, SaysWhatTheOpWasMadeOf) {
  X();
  Value product;
  {
    const Function::Scope scope(
        f_, std::make_shared<Provenance>(Provenance{.node = "Mul_1", .kind = "Mul"}));
    product = x_ * Clamped(x_ + 3.0);
  }
  const Function::Scope scope(
      f_, std::make_shared<Provenance>(Provenance{.node = "Div_2", .kind = "Div"}));
  f_.Return("y", product / 6.0);
  const Node* made = Only<HardSwish>(After(f_, Recognise));
  ASSERT_NE(made, nullptr);
  EXPECT_THAT(made->from->ToText(), ::testing::HasSubstr("Div_2"));
}

TEST_F(RecogniseTest, NotAnotherOffset) {
  X();
  ExpectLeftAlone(x_ * Clamped(x_ + 2.5) / 6.0);
}

TEST_F(RecogniseTest, NotOtherBounds) {
  X();
  ExpectLeftAlone(x_ * Clamped(x_ + 3.0, 0, 5) / 6.0);
}

TEST_F(RecogniseTest, NotAnotherLowerBound) {
  X();
  ExpectLeftAlone(x_ * Clamped(x_ + 3.0, -1, 6) / 6.0);
}

TEST_F(RecogniseTest, NotAnotherDivisor) {
  X();
  ExpectLeftAlone(x_ * Clamped(x_ + 3.0) / 5.0);
}

TEST_F(RecogniseTest, NotTheReciprocal) {
  X();
  ExpectLeftAlone(6.0 / (x_ * Clamped(x_ + 3.0)));
}

TEST_F(RecogniseTest, NotTwoUnlikeValues) {
  X();
  const Value other = f_.Argument("other", F32({2, 5}));
  ExpectLeftAlone(x_ * Clamped(other + 3.0) / 6.0);
}

TEST_F(RecogniseTest, NotASumInsteadOfAProduct) {
  X();
  ExpectLeftAlone((x_ + Clamped(x_ + 3.0)) / 6.0);
}

TEST_F(RecogniseTest, NotAHardSigmoidOfAnotherSlope) {
  X();
  ExpectLeftAlone(x_ * f_(HardSigmoid{.alpha = 0.2, .beta = 0.5}, {x_}));
}

TEST_F(RecogniseTest, NotIntegersWhoseQuotientIsAnother) {
  x_ = f_.Argument("x", Type::Tensor(DType::kI32, {8}));
  ExpectLeftAlone(x_ * Clamped(x_ + 3.0) / 6.0);
}

TEST_F(RecogniseTest, NotWhereTheDivisorBroadcasts) {
  X({1, 5});
  const Value six = f_(Fill{.value = 6, .shape = {3, 5}}, {});
  ExpectLeftAlone(x_ * Clamped(x_ + 3.0) / six);
}

TEST_F(RecogniseTest, NotWhereTheDivisorAddsAnAxis) {
  X({5});
  const Value six = f_(Fill{.value = 6, .shape = {1, 1}}, {});
  ExpectLeftAlone(x_ * Clamped(x_ + 3.0) / six);
}

TEST_F(RecogniseTest, NotWhereTheOffsetBroadcasts) {
  X({1, 5});
  const Value three = f_(Fill{.value = 3, .shape = {3, 5}}, {});
  ExpectLeftAlone(x_ * Clamped(x_ + three) / 6.0);
}

TEST_F(RecogniseTest, SmallPowers) {
  const std::pair<double, std::vector<std::string>> cases[] = {{1, {}},
                                                               {2, {"mul"}},
                                                               {3, {"mul", "mul"}},
                                                               {4, {"mul", "mul"}},
                                                               {0.5, {"sqrt"}},
                                                               {-0.5, {"sqrt", "fill", "div"}},
                                                               {-1, {"fill", "div"}},
                                                               {-2, {"mul", "fill", "div"}}};
  for (const auto& [exponent, ops] : cases) {
    Module m;
    Function& f = *m.AddFunction("f");
    const Value x = f.Argument("x", F32({2, 5}));
    const Value magnitude = abs(x);
    const Value y = pow(magnitude, f(Fill{.value = exponent, .dtype = DType::kF32}, {}));
    f.Return("y", y);
    const Function& after = After(f, Recognise);
    std::vector<std::string> expected = {"abs"};
    expected.insert(expected.end(), ops.begin(), ops.end());
    EXPECT_THAT(Ops(after), testing::UnorderedElementsAreArray(expected)) << exponent;
    ExpectSame(f, after, {.tolerance = kTolerance});
  }
}

TEST_F(RecogniseTest, LeavesOtherPowersAlone) {
  X();
  ExpectLeftAlone(pow(abs(x_), f_(Fill{.value = 2.5, .dtype = DType::kF32}, {})));
}

TEST_F(RecogniseTest, LeavesAPowerAloneWhoseExponentHasMoreElements) {
  X({5});
  const Value two = f_(Fill{.value = 2, .dtype = DType::kF32, .shape = {3, 1}}, {});
  ExpectLeftAlone(pow(x_, two));
}

}  // namespace
}  // namespace forge::ir
