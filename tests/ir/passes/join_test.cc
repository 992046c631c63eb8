// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/product/matmul.h"
#include "tests/ir/passes/pass_test.h"

namespace forge::ir {
namespace {

class JoinTest : public PassTest {
 protected:
  Value X() { return f_.Argument("x", F32({3, 4})); }
  Value Weight(std::string name, int64_t columns) {
    return Constant(f_, std::move(name), {4, columns});
  }
  Value Product(Value x, Value weight) { return f_(MatMul{}, {x, weight}); }
  // Read by something that a slice can be taken into.
  void Return(std::string name, Value y) {
    const Dim elements = y.type().elements();
    f_.Return(std::move(name), f_(Reshape{.shape = {elements}}, {y}));
  }
  void ExpectJoined(int products) {
    const Function& after = After(f_, Join);
    EXPECT_EQ(CountOf<MatMul>(after), products);
    ExpectSame(f_, after, {.tolerance = 1e-6});
  }
  template <class T>
  static int CountOf(const Function& f) {
    int n = 0;
    for (const Node& node : f.nodes()) n += node.op.Is<T>();
    return n;
  }
};

TEST_F(JoinTest, ProductsOfOneValue) {
  const Value x = X();
  Return("q", Product(x, Weight("wq", 5)));
  Return("k", Product(x, Weight("wk", 2)));
  Return("v", Product(x, Weight("wv", 3)));
  ExpectJoined(1);
}

TEST_F(JoinTest, WithTheirBiasesOnEitherSide) {
  const Value x = X();
  Return("q", Product(x, Weight("wq", 5)) + Constant(f_, "bq", {5}));
  Return("k", Constant(f_, "bk", {2}) + Product(x, Weight("wk", 2)));
  ExpectJoined(1);
  EXPECT_EQ(CountOf<ir::Add>(After(f_, Join)), 1);
}

TEST_F(JoinTest, WeightsThatAreComputedLater) {
  const Value x = X();
  const Value q = Product(x, Weight("wq", 5));
  const Value wk = f_(Transpose{.permutation = {1, 0}}, {Constant(f_, "wk", {2, 4})});
  Return("q", q);
  Return("k", Product(x, wk));
  ExpectJoined(1);
}

TEST_F(JoinTest, WeightsThatALaterLiteralScales) {
  const Value x = X();
  Return("q", Product(x, Weight("wq", 5)));
  const Value wk = Weight("wk", 2) * f_(Fill{.value = 0.5}, {});
  Return("k", Product(x, wk));
  ExpectJoined(1);
}

// A file may hold a chain of any length.
TEST_F(JoinTest, WeightsAtTheEndOfALongChain) {
  const Value x = X();
  Return("q", Product(x, Weight("wq", 5)));
  Value wk = Constant(f_, "wk", {4, 2});
  for (int i = 0; i < 200000; ++i) wk = f_(Transpose{.permutation = {1, 0}}, {wk});
  Return("k", Product(x, wk));
  Function joined("joined", &m_);
  EXPECT_THAT(Join(f_, joined), Succeeds());
  EXPECT_EQ(CountOf<MatMul>(joined), 1);
}

TEST_F(JoinTest, TransposedWeights) {
  const Value x = X();
  for (int64_t n : {2, 3})
    Return(fmt::format("y{}", n),
           f_(MatMul{.transpose_b = true}, {x, Constant(f_, fmt::format("w{}", n), {n, 4})}));
  ExpectJoined(1);
}

TEST_F(JoinTest, LeavesAloneTransposedLeftSides) {
  const Value x = f_.Argument("x", F32({4, 3}));
  for (int64_t n : {2, 5})
    Return(fmt::format("y{}", n),
           f_(MatMul{.transpose_a = true}, {x, Weight(fmt::format("w{}", n), n)}));
  ExpectJoined(2);
}

TEST_F(JoinTest, LeavesAloneWhatAnEpilogueWouldLose) {
  const Value x = X();
  Return("gate", f_(Tanh{}, {Product(x, Weight("wg", 5))}));
  Return("up", Product(x, Weight("wu", 5)));
  ExpectJoined(2);
}

TEST_F(JoinTest, LeavesAloneWhatIsReadTwice) {
  const Value x = X();
  const Value q = Product(x, Weight("wq", 5));
  Return("q", q);
  Return("again", q);
  Return("k", Product(x, Weight("wk", 2)));
  ExpectJoined(2);
}

TEST_F(JoinTest, LeavesAloneOperandsThatAreNotConstant) {
  const Value x = X();
  Return("q", Product(x, Weight("wq", 5)));
  Return("k", Product(x, f_.Argument("w", F32({4, 2}))));
  ExpectJoined(2);
}

// Their rank follows from a value: nothing says yet where a slice would begin.
TEST_F(JoinTest, LeavesAloneProductsOfUnknownRank) {
  const Value x = f_.Argument("x", Type::Unranked(DType::kF32));
  for (const char* name : {"q", "k"}) {
    const Value y = Product(x, Weight(fmt::format("w{}", name), 4));
    f_.Return(name, Product(y, Weight(fmt::format("o{}", name), 4)));
  }
  EXPECT_EQ(CountOf<MatMul>(After(f_, Join)), 4);
}

TEST_F(JoinTest, LeavesAloneProductsOfUnlikeShape) {
  const Value x = X();
  Return("q", Product(x, Weight("wq", 5)) + Constant(f_, "bq", {5}));
  Return("k", Product(x, Weight("wk", 2)));
  Return("batched", Product(x, Constant(f_, "wb", {2, 4, 2})));
  ExpectJoined(3);
}

}  // namespace
}  // namespace forge::ir
