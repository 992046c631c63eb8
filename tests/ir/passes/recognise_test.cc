// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <numbers>

#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/norm/layer_norm.h"
#include "ir/ops/product/attention.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/ops/reduction/softmax.h"
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
    return (*v.fn)(Clamp{.low = low, .high = high}, {v});
  }
  void ExpectHardSwish(Value y) {
    f_.Return("y", y);
    const Function& after = After(f_, Recognise);
    EXPECT_THAT(Ops(after), ElementsAre("hard_swish"));
    ExpectSame(f_, after, {.tolerance = kTolerance});
  }
  static Value Number(Value like, double number) {
    return (*like.fn)(Fill{.value = number, .dtype = like.type().dtype()}, {});
  }
  // What becomes of a spelling of one value, which must be the same.
  const Function& AfterSpelling(const std::function<Value(Value)>& spelling) {
    Function* f =
        Keep(std::make_unique<Function>(fmt::format("spelling.{}", m_.functions().size())));
    f->Return("y", spelling(f->Argument("x", F32({2, 5}))));
    const Function& after = After(*f, Recognise);
    ExpectSame(*f, after, {.tolerance = kTolerance});
    return after;
  }
  void ExpectLeftAlone(Value y) {
    f_.Return(fmt::format("y{}", f_.results().size()), y);
    const Function& after = After(f_, Recognise);
    EXPECT_EQ(Ops(after), Ops(f_));
    ExpectSame(f_, after);
  }

  Value x_;
};

TEST_F(RecogniseTest, NamesAllThatAnOpReplaces) {
  int count = 0;
  const auto named = [&](const std::string& kind) {
    return Function::Scope(f_, From(fmt::format("{}_{}", kind, count++), kind));
  };
  Value y = X();
  {
    const Function::Scope scope = named("Relu");
    y = x_ = f_(Relu{}, {x_});
  }
  {
    const Function::Scope scope = named("Add");
    y = y + 3.0;
  }
  {
    const Function::Scope scope = named("Clip");
    y = Clamped(y);
  }
  {
    const Function::Scope scope = named("Mul");
    y = x_ * y;
  }
  {
    const Function::Scope scope = named("Div");
    y = y / 6.0;
  }
  f_.Return("y", y);
  const Function& after = After(f_, Recognise);
  ASSERT_THAT(Ops(after), ElementsAre("relu", "hard_swish"));
  EXPECT_EQ(after.nodes()[1].from->ToText(), "Add_1 + Clip_2 + Mul_3 + Div_4");
}

TEST_F(RecogniseTest, HardSwishDividedLast) {
  X();
  ExpectHardSwish(x_ * Clamped(x_ + 3.0) / 6.0);
}

TEST_F(RecogniseTest, ActivationsOfWhatIsScaledAndShifted) {
  const std::function<Value(Value)> operands[] = {[](Value v) { return v * 0.75; },
                                                  [](Value v) { return v * 0.75 + 0.5; },
                                                  [](Value v) { return v * v + 3.0; }};
  for (const auto& operand : operands) {
    EXPECT_NE(Only<HardSwish>(AfterSpelling([&](Value v) {
                const Value x = operand(v);
                return x * Clamped(x + 3.0) / 6.0;
              })),
              nullptr);
    EXPECT_NE(Only<Gelu>(AfterSpelling([&](Value v) {
                const Value x = operand(v);
                return x * (erf(x / std::numbers::sqrt2) + 1.0) * 0.5;
              })),
              nullptr);
  }
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

TEST_F(RecogniseTest, GeluInItsSpellings) {
  const double root = 1 / std::numbers::sqrt2;
  const std::function<Value(Value)> spellings[] = {
      [&](Value x) { return x * 0.5 * (erf(x / std::numbers::sqrt2) + 1.0); },
      [&](Value x) { return x * (0.5 * (1.0 + erf(x * root))); },
      [&](Value x) { return x * (erf(x * root) + 1.0) * 0.5; },
      [&](Value x) { return (erf(root * x) * 0.5 + 0.5) * x; },
      [&](Value x) { return x * (erf(x / std::numbers::sqrt2) + 1.0) / 2.0; }};
  for (const auto& spelling : spellings) {
    const Function& after = AfterSpelling(spelling);
    EXPECT_THAT(Ops(after), ElementsAre("gelu"));
    EXPECT_NE(Only<Gelu>(after), nullptr);
  }
}

TEST_F(RecogniseTest, GeluByTanhInItsSpellings) {
  const auto three = [](Value x) { return pow(x, Number(x, 3)); };
  const double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const std::function<Value(Value)> spellings[] = {
      [&](Value x) { return x * 0.5 * (tanh((x + three(x) * 0.044715) * scale) + 1.0); },
      [&](Value x) { return 0.5 * x * (1.0 + tanh(scale * (x + 0.044715 * (x * x * x)))); },
      [&](Value x) { return 0.5 * x * (1.0 + tanh(x * scale * (1.0 + 0.044715 * x * x))); },
      [&](Value x) { return x * (0.5 * (1.0 + tanh(scale * (0.044715 * x * x * x + x)))); }};
  for (const auto& spelling : spellings) {
    const Function& after = AfterSpelling(spelling);
    EXPECT_THAT(Ops(after), ElementsAre("gelu"));
    const Node* made = Only<Gelu>(after);
    ASSERT_NE(made, nullptr);
    EXPECT_TRUE(made->op.As<Gelu>()->tanh_form);
  }
}

TEST_F(RecogniseTest, NotAGeluOfAnotherSlopeHalfOrOperand) {
  const Value other = f_.Argument("other", F32({2, 5}));
  X();
  ExpectLeftAlone(x_ * 0.5 * (erf(x_ / 1.5) + 1.0));
  ExpectLeftAlone(x_ * 0.25 * (erf(x_ / std::numbers::sqrt2) + 1.0));
  ExpectLeftAlone(x_ * 0.5 * (erf(x_ / std::numbers::sqrt2) + 0.5));
  ExpectLeftAlone(x_ * 0.5 * (erf(other / std::numbers::sqrt2) + 1.0));
  ExpectLeftAlone(x_ * 0.5 * (tanh((x_ + x_ * x_ * x_ * 0.05) * 0.7978845608) + 1.0));
  ExpectLeftAlone(x_ * 0.5 * (tanh((x_ + x_ * x_ * 0.044715) * 0.7978845608) + 1.0));
}

TEST_F(RecogniseTest, Silu) {
  const Function& after = AfterSpelling([&](Value x) { return (*x.fn)(Sigmoid{}, {x}) * x; });
  EXPECT_THAT(Ops(after), ElementsAre("silu"));
}

TEST_F(RecogniseTest, NotASiluOfAScaledGate) {
  X();
  ExpectLeftAlone(x_ * f_(Sigmoid{}, {x_ * 1.702}));
}

TEST_F(RecogniseTest, HardSigmoidInItsSpellings) {
  const std::function<Value(Value)> spellings[] = {
      [&](Value x) { return Clamped(x + 3.0) / 6.0; },
      [&](Value x) { return Clamped(x + 3.0) * static_cast<double>(1.0f / 6); },
      [&](Value x) { return (*x.fn)(Clamp{.low = 0, .high = 1}, {x * 0.2 + 0.5}); }};
  for (const auto& spelling : spellings)
    EXPECT_THAT(Ops(AfterSpelling(spelling)), ElementsAre("hard_sigmoid"));
}

TEST_F(RecogniseTest, NotAHardSigmoidWithoutAnUpperBound) {
  X();
  const double none = std::numeric_limits<double>::infinity();
  ExpectLeftAlone(Clamped(x_ + 0.5, 0, none));
  ExpectLeftAlone(Clamped(x_ + 3.0, 0, none) / 6.0);
}

TEST_F(RecogniseTest, NotAHardSigmoidThatReachesAnotherHeight) {
  X();
  ExpectLeftAlone(Clamped(x_ + 3.0) / 5.0);
  ExpectLeftAlone(Clamped(x_ * 0.5, 0, 1));
}

class RecogniseNormTest : public RecogniseTest {
 protected:
  Value Mean(Value x, std::vector<int64_t> axes = {-1}, bool keep = true) {
    return (*x.fn)(Reduce{.kind = ReduceKind::kMean, .axes = std::move(axes), .keep_dims = keep},
                   {x});
  }
};

TEST_F(RecogniseNormTest, LayerNormInItsSpellings) {
  const std::function<Value(Value)> spellings[] = {
      [&](Value x) {
        const Value c = x - Mean(x);
        return c / sqrt(Mean(c * c) + 1e-5);
      },
      [&](Value x) {  // two differences, a power, a reciprocal
        const Value c = x - Mean(x), d = x - Mean(x);
        return c * (1.0 / sqrt(Mean(pow(d, Number(d, 2))) + 1e-5));
      },
      [&](Value x) {
        const Value c = x - Mean(x, {1});
        return c * pow(Mean(c * c, {-1}) + 1e-5, Number(x, -0.5));
      },
      [&](Value x) {  // the variance by its moments
        const Value mean = Mean(x);
        return (x - mean) / sqrt(Mean(x * x) - mean * mean + 1e-5);
      }};
  for (const auto& spelling : spellings) {
    const Function& after = AfterSpelling(spelling);
    EXPECT_THAT(Ops(after), ElementsAre("layer_norm"));
    const Node* made = Only<LayerNorm>(after);
    ASSERT_NE(made, nullptr);
    EXPECT_EQ(made->op.As<LayerNorm>()->axis, 1);
    EXPECT_FLOAT_EQ(static_cast<float>(made->op.As<LayerNorm>()->epsilon), 1e-5f);
  }
}

TEST_F(RecogniseNormTest, RmsNormInItsSpellings) {
  const std::function<Value(Value)> spellings[] = {
      [&](Value x) { return x / sqrt(Mean(x * x) + 1e-6); },
      [&](Value x) { return x * (1.0 / sqrt(Mean(pow(x, Number(x, 2))) + 1e-6)); },
      [&](Value x) { return pow(Mean(x * x, {1}) + 1e-6, Number(x, -0.5)) * x; }};
  for (const auto& spelling : spellings) {
    const Function& after = AfterSpelling(spelling);
    EXPECT_THAT(Ops(after), ElementsAre("layer_norm"));
    const Node* made = Only<LayerNorm>(after);
    ASSERT_NE(made, nullptr);
    EXPECT_FALSE(made->op.As<LayerNorm>()->subtract_mean);
    EXPECT_FLOAT_EQ(static_cast<float>(made->op.As<LayerNorm>()->epsilon), 1e-6f);
  }
}

// Around the mean of something else a norm has no mean of its own to subtract.
TEST_F(RecogniseNormTest, ANormAroundAnotherMeanIsAnRmsNormOfTheDifference) {
  const Function& after = AfterSpelling([&](Value x) {
    const Value c = x - Mean(2.0 * x);
    return c / sqrt(Mean(c * c) + 1e-5);
  });
  const Node* made = Only<LayerNorm>(after);
  ASSERT_NE(made, nullptr);
  EXPECT_FALSE(made->op.As<LayerNorm>()->subtract_mean);
}

TEST_F(RecogniseNormTest, NotAnRmsNormOfSomethingElse) {
  X({2, 5, 3});
  const Value other = f_.Argument("other", F32({2, 5, 3}));
  ExpectLeftAlone(x_ / sqrt(Mean(x_ * other) + 1e-6));
  ExpectLeftAlone(other / sqrt(Mean(x_ * x_) + 1e-6));
  ExpectLeftAlone(x_ / sqrt(Mean(x_ * x_, {1}) + 1e-6));
  ExpectLeftAlone(x_ / sqrt(Mean(2.0 * x_ * x_) + 1e-6));
  ExpectLeftAlone(sqrt(Mean(x_ * x_) + 1e-6) / x_);
  const Value mean = Mean(x_);
  ExpectLeftAlone((x_ - mean) / sqrt(Mean(x_ * x_) - mean * Mean(other) + 1e-5));
}

TEST_F(RecogniseNormTest, NotANormOverAnInnerAxisOrAroundSomethingElse) {
  X({2, 5, 3});
  const Value other = f_.Argument("other", F32({2, 5, 3}));
  Value c = x_ - Mean(x_, {1});
  ExpectLeftAlone(c / sqrt(Mean(c * c, {1}) + 1e-5));
  c = x_ - Mean(other);
  ExpectLeftAlone(c / sqrt(Mean(c * x_) + 1e-5));
  c = x_ - Mean(x_);
  ExpectLeftAlone(c / sqrt(Mean(c * x_) + 1e-5));
  ExpectLeftAlone(c / sqrt(Mean(c * c, {0, 2}) + 1e-5));
  ExpectLeftAlone(sqrt(Mean(c * c) + 1e-5) / c);
}

class RecogniseSoftmaxTest : public RecogniseTest {
 protected:
  Value Fold(ReduceKind kind, Value x, int64_t axis = -1) {
    return (*x.fn)(Reduce{.kind = kind, .axes = {axis}}, {x});
  }
};

TEST_F(RecogniseSoftmaxTest, SoftmaxInItsSpellings) {
  const std::function<Value(Value)> spellings[] = {[&](Value x) {
                                                     const Value e = exp(x);
                                                     return e / Fold(ReduceKind::kSum, e);
                                                   },
                                                   [&](Value x) {
                                                     const Value e =
                                                         exp(x - Fold(ReduceKind::kMax, x));
                                                     return e / Fold(ReduceKind::kSum, e);
                                                   }};
  for (const auto& spelling : spellings)
    EXPECT_THAT(Ops(AfterSpelling(spelling)), ElementsAre("softmax"));
}

TEST_F(RecogniseSoftmaxTest, NotASoftmaxOverAnotherAxisOrSum) {
  X();
  const Value e = exp(x_ - Fold(ReduceKind::kMax, x_));
  ExpectLeftAlone(e / Fold(ReduceKind::kMax, e));
  ExpectLeftAlone(e / Fold(ReduceKind::kSum, x_));
  ExpectLeftAlone(Fold(ReduceKind::kSum, e) / e);
}

class RecogniseAttentionTest : public RecogniseTest {
 protected:
  struct Operands {
    Value q, k, v, mask, choice;
  };
  static Value Swap(Value x) { return (*x.fn)(Transpose{.permutation = {0, 2, 1}}, {x}); }
  static Value Product(Value a, Value b, bool transpose = false) {
    return (*a.fn)(MatMul{.transpose_b = transpose}, {a, b});
  }
  static Value Soft(Value x, int64_t axis = -1) { return (*x.fn)(Softmax{.axis = axis}, {x}); }
  using Spelling = std::function<Value(const Operands&)>;

  const Function& AfterSpelling(const Spelling& spelling) {
    Function* f =
        Keep(std::make_unique<Function>(fmt::format("spelling.{}", m_.functions().size())));
    Operands o{f->Argument("q", F32({2, 3, 4})), f->Argument("k", F32({2, 5, 4})),
               f->Argument("v", F32({2, 5, 6})), f->Argument("mask", F32({1, 5})),
               f->Argument("choice", Type::Tensor(DType::kBool, {2, 1, 5}))};
    f->Return("y", spelling(o));
    const Function& after = After(*f, Recognise);
    ExpectSame(*f, after, {.tolerance = 1e-5});
    return after;
  }
  static bool HasAttention(const Function& f) {
    return std::any_of(f.nodes().begin(), f.nodes().end(),
                       [](const Node& n) { return n.op.Is<Attention>(); });
  }
};

TEST_F(RecogniseAttentionTest, InItsSpellings) {
  const Spelling spellings[] = {
      [](const Operands& o) { return Product(Soft(Product(o.q, Swap(o.k)) * 0.5), o.v); },
      [](const Operands& o) { return Product(Soft(Product(o.q, o.k, true) / 2.0, 2), o.v); },
      [](const Operands& o) {
        return Product(Soft(Product(o.q * 0.7, Swap(o.k) * 0.7) + o.mask), o.v);
      },
      [](const Operands& o) { return Product(Soft(o.mask + Product(o.q, Swap(o.k)) * 0.5), o.v); },
  };
  for (const Spelling& spelling : spellings) {
    const Function& after = AfterSpelling(spelling);
    const Node* made = Only<Attention>(after);
    ASSERT_NE(made, nullptr);
    EXPECT_NEAR(made->op.As<Attention>()->scale, 0.5, 0.011);
    EXPECT_THAT(Ops(after), ::testing::Not(::testing::Contains("softmax")));
  }
}

TEST_F(RecogniseAttentionTest, WithAMaskThatChooses) {
  const double lowest = -std::numeric_limits<double>::infinity();
  Function* f = Keep(std::make_unique<Function>("chosen"));
  const Value q = f->Argument("q", F32({2, 3, 4})), k = f->Argument("k", F32({2, 5, 4}));
  const Value choice = f->Argument("choice", Type::Tensor(DType::kBool, {2, 1, 5}));
  f->Return("y", Product(Soft(select(choice, Product(q, Swap(k)) * 0.5, lowest)), k));
  const Node* made = Only<Attention>(After(*f, Recognise));
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(made->in.size(), 4u);
}

TEST_F(RecogniseAttentionTest, NotOverAnotherAxisOrWithoutTheSwap) {
  const Spelling misses[] = {
      [](const Operands& o) { return Product(Soft(Product(o.q, Swap(o.k)), 1), o.v); },
      [](const Operands& o) { return Product(exp(Product(o.q, Swap(o.k))), o.v); },
      [](const Operands& o) { return Product(Soft(Product(o.q, Swap(o.k)) * o.mask), o.v); },
      [](const Operands& o) {
        return Product(Soft(select(o.choice, Product(o.q, Swap(o.k)), -5.0)), o.v);
      },
      [](const Operands& o) {  // the probabilities are wanted too
        const Value p = Soft(Product(o.q, Swap(o.k)));
        o.q.fn->Return("p", p);
        return Product(p, o.v);
      }};
  for (const Spelling& miss : misses) EXPECT_FALSE(HasAttention(AfterSpelling(miss)));
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
