// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ir/ops/complex/view.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/movement/pad.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/movement/slice.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/norm/layer_norm.h"
#include "ir/ops/product/matmul.h"
#include "tests/ir/passes/pass_test.h"

namespace forge::ir {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SimplifyTest : public PassTest {
 protected:
  using Made = std::function<Value(Function&, Value x)>;

  // The ops that are left of what `make` builds on an argument; results agree bit by bit on random
  // numbers and on the edges of floats.
  std::vector<std::string> Left(const Type& type, const Made& make) {
    Function& f = *m_.AddFunction("case");
    const Value x = f.Argument("x", type);
    f.Return("y", make(f, x));
    const Function& after = After(f, Simplify);
    ExpectSame(f, after);
    ExpectSameEdges(f, after);
    std::vector<std::string> names = Ops(after);
    std::erase(names, "fill");
    return names;
  }
  std::vector<std::string> Left(const Made& make) { return Left(F32({2, 6}), make); }

 private:
  void ExpectSameEdges(const Function& before, const Function& after) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    constexpr double kEdges[] = {0.0, -0.0, kInf, -kInf, std::numeric_limits<double>::quiet_NaN()};
    std::vector<HostValue> arguments = RandomArguments(before);
    if (!Has(kFloatTypes, arguments[0].dtype())) return;
    for (int64_t i = 0; i < arguments[0].elements(); ++i) arguments[0].Set(i, kEdges[i % 5]);
    FORGE_ASSERT_OK_AND_ASSIGN(const Interpretation want, Run(before, arguments));
    FORGE_ASSERT_OK_AND_ASSIGN(const Interpretation got, Run(after, arguments));
    for (int64_t i = 0; i < want.results[0].elements(); ++i) {
      const double a = want.results[0].f64(i), b = got.results[0].f64(i);
      EXPECT_TRUE(std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b))
          << "element " << i << ": " << a << " before, " << b << " after";
    }
  }
};

Value Cast1(Function& f, Value x, DType to) { return f(Cast{to}, {x}); }

TEST_F(SimplifyTest, ViewsOfViewsGo) {
  const Type pairs = F32({3, 2});
  const auto through = [](Function& f, Value x) {
    return f(ViewAsReal{}, {f(ViewAsComplex{}, {x})});
  };
  EXPECT_THAT(Left(pairs, through), IsEmpty());
  const auto within = [](Function& f, Value x) {
    const Value z = f(ViewAsComplex{}, {x});
    return f(ViewAsReal{}, {z + z});
  };
  EXPECT_THAT(Left(pairs, within), ElementsAre("view_as_complex", "add", "view_as_real"));
}

TEST_F(SimplifyTest, NeutralNumbersGo) {
  EXPECT_THAT(Left([](Function&, Value x) { return x * 1; }), IsEmpty());
  EXPECT_THAT(Left([](Function&, Value x) { return 1 * x; }), IsEmpty());
  EXPECT_THAT(Left([](Function&, Value x) { return x / 1; }), IsEmpty());
  EXPECT_THAT(Left([](Function&, Value x) { return x - 0.0; }), IsEmpty());
  EXPECT_THAT(Left([](Function&, Value x) { return x + -0.0; }), IsEmpty());
  EXPECT_THAT(Left(Type::Tensor(DType::kI32, {3}), [](Function&, Value x) { return x + 0.0; }),
              IsEmpty());
}

TEST_F(SimplifyTest, NumbersThatChangeAZeroANaNOrAShapeStay) {
  EXPECT_THAT(Left([](Function&, Value x) { return x + 0.0; }), ElementsAre("add"));
  EXPECT_THAT(Left([](Function&, Value x) { return x - -0.0; }), ElementsAre("sub"));
  EXPECT_THAT(Left([](Function&, Value x) { return x * 0.0; }), ElementsAre("mul"));
  EXPECT_THAT(Left([](Function&, Value x) { return x - x; }), ElementsAre("sub"));
  EXPECT_THAT(Left([](Function&, Value x) { return 1 / x; }), ElementsAre("div"));
  EXPECT_THAT(Left([](Function&, Value x) { return 0.0 - x; }), ElementsAre("sub"));
  EXPECT_THAT(
      Left([](Function& f, Value x) { return x * f(Fill{.value = 1, .shape = {3, 1, 1}}, {}); }),
      ElementsAre("mul"));
}

TEST_F(SimplifyTest, StatisticsThatNobodyReadsGo) {
  const auto norm = [](Function& f, Value x, bool read) {
    const Values all = f.Add(LayerNorm{.statistics = true}, std::array{x});
    if (read) f.Return("deviation", all[2]);
    return all[0];
  };
  const auto saves = [&](bool read) {
    Function& f = *m_.AddFunction("case");
    f.Return("y", norm(f, f.Argument("x", F32({2, 6})), read));
    const Function& after = After(f, Simplify);
    ExpectSame(f, after);
    return after.nodes()[0].op.saves();
  };
  EXPECT_FALSE(saves(false));
  EXPECT_TRUE(saves(true));
}

TEST_F(SimplifyTest, ANormIsComputedOnceWhereItsStatisticsAreReadToo) {
  Function& f = *m_.AddFunction("case");
  const Value x = f.Argument("x", F32({2, 6}));
  f.Return("y", f(LayerNorm{}, {x}));
  f.Return("other", f(LayerNorm{.epsilon = 1}, {x}));
  f.Return("deviation", f.Add(LayerNorm{.statistics = true}, std::array{x})[2]);
  const Function& after = After(f, Simplify);
  ExpectSame(f, after);
  ASSERT_EQ(after.nodes().size(), 2u);
  EXPECT_TRUE(after.nodes()[0].op.saves());
  EXPECT_FALSE(after.nodes()[1].op.saves());
}

TEST_F(SimplifyTest, WhatUndoesOrRepeatsItselfGoes) {
  EXPECT_THAT(Left([](Function&, Value x) { return -(-x); }), IsEmpty());
  EXPECT_THAT(Left(Type::Tensor(DType::kBool, {3}),
                   [](Function& f, Value x) { return f(ir::Not{}, {f(ir::Not{}, {x})}); }),
              IsEmpty());
  EXPECT_THAT(Left([](Function&, Value x) { return abs(abs(x)); }), ElementsAre("abs"));
  EXPECT_THAT(Left([](Function& f, Value x) { return f(Relu{}, {f(Relu{}, {x})}); }),
              ElementsAre("relu"));
  EXPECT_THAT(Left([](Function&, Value x) { return max(x, x); }), IsEmpty());
  EXPECT_THAT(Left([](Function&, Value x) { return select(x > 0.0, x, x); }), IsEmpty());
}

TEST_F(SimplifyTest, WhatOnlyLooksLikeItStays) {
  EXPECT_THAT(Left([](Function&, Value x) { return -abs(x); }), ElementsAre("abs", "neg"));
  EXPECT_THAT(Left([](Function&, Value x) { return abs(-x); }), ElementsAre("neg", "abs"));
  EXPECT_THAT(Left([](Function&, Value x) { return exp(exp(x)); }), ElementsAre("exp", "exp"));
  EXPECT_THAT(Left([](Function&, Value x) { return max(x, -x); }), ElementsAre("neg", "maximum"));
  EXPECT_THAT(Left([](Function& f, Value x) {  // the condition enlarges the result
                return select(f(Fill{.value = 1, .dtype = DType::kBool, .shape = {3, 1, 1}}, {}), x,
                              x);
              }),
              ElementsAre("select"));
}

TEST_F(SimplifyTest, CastsOfLosslessCastsBecomeOne) {
  const auto casts = [](DType through, DType to) {
    return [=](Function& f, Value x) { return Cast1(f, Cast1(f, x, through), to); };
  };
  const auto tensor = [](DType t) { return Type::Tensor(t, {2, 5}); };
  using D = DType;
  EXPECT_THAT(Left(tensor(D::kF16), casts(D::kF32, D::kF16)), IsEmpty());
  EXPECT_THAT(Left(tensor(D::kI8), casts(D::kI32, D::kF32)), ElementsAre("cast"));
  EXPECT_THAT(Left(tensor(D::kBool), casts(D::kF32, D::kI32)), ElementsAre("cast"));
  EXPECT_THAT(Left(tensor(D::kU8), casts(D::kF16, D::kI32)), ElementsAre("cast"));
  // What loses bits, saturates or becomes a truth value on the way.
  EXPECT_THAT(Left(casts(D::kF16, D::kF32)), ElementsAre("cast", "cast"));
  EXPECT_THAT(Left(tensor(D::kBF16), casts(D::kF16, D::kBF16)), ElementsAre("cast", "cast"));
  EXPECT_THAT(Left(tensor(D::kI32), casts(D::kF32, D::kI32)), ElementsAre("cast", "cast"));
  EXPECT_THAT(Left(tensor(D::kI8), casts(D::kF32, D::kU8)), ElementsAre("cast", "cast"));
  EXPECT_THAT(Left(tensor(D::kI8), casts(D::kU32, D::kF32)), ElementsAre("cast", "cast"));
  EXPECT_THAT(Left(tensor(D::kI8), casts(D::kBool, D::kI8)), ElementsAre("cast", "cast"));
}

TEST_F(SimplifyTest, MovementOfMovementBecomesOne) {
  const auto transposes = [](const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
    return [=](Function& f, Value x) { return f(Transpose{b}, {f(Transpose{a}, {x})}); };
  };
  const Type cube = F32({2, 3, 4});
  EXPECT_THAT(Left(cube, transposes({1, 2, 0}, {2, 0, 1})), IsEmpty());
  EXPECT_THAT(Left(cube, transposes({1, 2, 0}, {1, 2, 0})), ElementsAre("transpose"));
  EXPECT_THAT(Left(cube, transposes({1, 2, 0}, {0, 2, 1})), ElementsAre("transpose"));
  EXPECT_THAT(
      Left([](Function& f, Value x) { return f(Reshape{{4, 3}}, {f(Reshape{{12}}, {x})}); }),
      ElementsAre("reshape"));
  EXPECT_THAT(
      Left([](Function& f, Value x) { return f(Reshape{{2, 6}}, {f(Reshape{{12}}, {x})}); }),
      IsEmpty());
  EXPECT_THAT(
      Left([](Function& f, Value x) { return f(Reshape{{12}}, {f(Transpose{{1, 0}}, {x})}); }),
      ElementsAre("transpose", "reshape"));
}

TEST_F(SimplifyTest, MovementThatMovesNothingGoes) {
  EXPECT_THAT(Left([](Function& f, Value x) {
                return f(Slice{.begin = {0}, .end = {6}, .axes = {1}}, {x});
              }),
              IsEmpty());
  EXPECT_THAT(Left([](Function& f, Value x) { return f(Pad{{0, 0}, {0, 0}}, {x}); }), IsEmpty());
  EXPECT_THAT(Left([](Function& f, Value x) {
                return f(Slice{.begin = {1}, .end = {6}, .axes = {1}}, {x});
              }),
              ElementsAre("slice"));
}

TEST_F(SimplifyTest, MovementOfEqualNumbersIsTheirFill) {
  EXPECT_THAT(Left([](Function& f, Value x) {
                const Value threes = f(Fill{3, DType::kF32, {1, 3, 2}}, {});
                return x * f(Reshape{{1, 6}},
                             {f(Slice{.begin = {0}, .end = {1}, .axes = {0}}, {threes})});
              }),
              ElementsAre("mul"));
}

TEST_F(SimplifyTest, ASliceOfAConcatReadsTheOperandItLiesIn) {
  const auto slice = [](const Slice& op) {
    return [=](Function& f, Value x) {
      const Value y = -x;
      return f(op, {f(Concat{.axis = 1}, {x, y})});
    };
  };
  EXPECT_THAT(Left(slice({.begin = {6}, .end = {12}, .axes = {-1}})), ElementsAre("neg"));
  EXPECT_THAT(Left(slice({.begin = {7}, .end = {9}, .axes = {1}})), ElementsAre("neg", "slice"));
  EXPECT_THAT(Left(slice({.begin = {1}, .end = {3}, .axes = {1}})), ElementsAre("slice"));
  const auto whole = ElementsAre("neg", "concat", "slice");
  EXPECT_THAT(Left(slice({.begin = {5}, .end = {8}, .axes = {1}})), whole);
  EXPECT_THAT(Left(slice({.begin = {0}, .end = {1}, .axes = {0}})), whole);
  EXPECT_THAT(Left(slice({.begin = {6}, .end = {12}, .axes = {1}, .steps = {2}})), whole);
  EXPECT_THAT(Left(slice({.begin = {-6}, .end = {12}, .axes = {1}})), whole);
}

TEST_F(SimplifyTest, EqualWorkIsDoneOnce) {
  // Cheap ops in between are compared, and computed again for those who read them.
  EXPECT_THAT(Left([](Function&, Value x) {
                const Value a = exp(x * x);
                const Value b = exp(x * x);
                return a - b;
              }),
              ElementsAre("mul", "exp", "sub"));
  EXPECT_THAT(Left(F32({3, 3}),
                   [](Function& f, Value x) {
                     const Value a = f(MatMul{}, {x, x});
                     const Value b = f(MatMul{}, {x, x});
                     return a + b;
                   }),
              ElementsAre("matmul", "add"));
}

TEST_F(SimplifyTest, UnequalOrCheapWorkIsNotShared) {
  EXPECT_THAT(Left(F32({3, 3}),
                   [](Function& f, Value x) {
                     const Value a = f(MatMul{}, {x, x});
                     const Value b = f(MatMul{.transpose_a = true}, {x, x});
                     return a + b;
                   }),
              ElementsAre("matmul", "matmul", "add"));
  EXPECT_THAT(Left([](Function&, Value x) {
                const Value a = exp(x * 2);
                const Value b = exp(x * 3);
                return a - b;
              }),
              ElementsAre("mul", "exp", "mul", "exp", "sub"));
  EXPECT_THAT(Left([](Function&, Value x) {
                const Value a = x * x;
                const Value b = x * x;
                return a - b;
              }),
              ElementsAre("mul", "mul", "sub"));
}

// A result of the function keeps its name and its place.
TEST_F(SimplifyTest, ResultsMayBecomeArgumentsAndEachOther) {
  const Value x = f_.Argument("x", F32({4}));
  const Value a = exp(x);
  const Value b = exp(x);
  f_.Return("a", a);
  f_.Return("b", b);
  f_.Return("c", x * 1);
  const Function& after = After(f_, Simplify);
  EXPECT_THAT(Ops(after), ElementsAre("exp"));
  ExpectSame(f_, after);
}

}  // namespace
}  // namespace forge::ir
