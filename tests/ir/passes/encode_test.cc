// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/compiler/relayout.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/product/matmul.h"
#include "ir/type/encodings.h"
#include "tests/ir/passes/pass_test.h"

namespace forge::ir {
namespace {

using ::testing::ElementsAre;

class EncodeTest : public PassTest {
 protected:
  EncodeTest() {
    target_.seconds = [this](const Candidate&) { return relayout_seconds_; };
  }

  // All operands and results of an op in one layout.
  static EncodingChoice All(const Candidate& c, const EncodingRef& e, double seconds) {
    return {std::vector<EncodingRef>(c.in.size(), e), std::vector<EncodingRef>(c.out.size(), e),
            seconds};
  }
  // MatMul runs in either layout.
  void MatMulTakes(double columns_seconds, double dense_seconds) {
    target_.encodings = [=, this](const Candidate& c) -> std::vector<EncodingChoice> {
      if (!c.op.Is<MatMul>()) return {};
      return {All(c, columns_, columns_seconds), All(c, nullptr, dense_seconds)};
    };
  }
  const Function& Encoded() {
    EXPECT_THAT(f_.status(), Succeeds());
    out_ = std::make_unique<Function>("main");
    EXPECT_THAT(AssignEncodings(f_, *out_, target_), Succeeds());
    ExpectSame(f_, *out_);
    return *out_;
  }
  static EncodingRef EncodingOf(const Function& f, uint32_t value) {
    return f.type(value).encoding();
  }

  EncodingRef columns_ = *PermutedEncoding::Make({1, 0});
  double relayout_seconds_ = 1;
  FakeTarget target_;
  std::unique_ptr<Function> out_;
};

TEST_F(EncodeTest, WithoutChoicesAllStaysDense) {
  const Value x = f_.Argument("x", F32({2, 2}));
  f_.Return("y", f_(MatMul{}, {x, x}) + 1.0);
  EXPECT_EQ(Ops(Encoded()), Ops(f_));
}

TEST_F(EncodeTest, PaysForARelayoutThatSavesMore) {
  const Value x = f_.Argument("x", F32({2, 2})), w = f_.Argument("w", F32({2, 2}));
  f_.Return("y", f_(MatMul{}, {x, w}));
  MatMulTakes(/*columns_seconds=*/1, /*dense_seconds=*/10);
  const Function& after = Encoded();
  EXPECT_THAT(Ops(after), ElementsAre("relayout", "relayout", "matmul", "relayout"));
  const Node* product = Only<MatMul>(after);
  for (uint32_t v : {product->in[0], product->in[1], product->first_out})
    EXPECT_EQ(EncodingOf(after, v), columns_);
}

TEST_F(EncodeTest, DoesNotPayForARelayoutThatSavesLess) {
  const Value x = f_.Argument("x", F32({2, 2})), w = f_.Argument("w", F32({2, 2}));
  f_.Return("y", f_(MatMul{}, {x, w}));
  MatMulTakes(/*columns_seconds=*/1, /*dense_seconds=*/2.5);
  EXPECT_THAT(Ops(Encoded()), ElementsAre("matmul"));
}

TEST_F(EncodeTest, ConstantsCostNothingToPack) {
  const Value w = Constant(f_, "w", {2, 2}), v = Constant(f_, "v", {2, 2});
  f_.Return("y", f_(MatMul{}, {w, v}));
  MatMulTakes(/*columns_seconds=*/1, /*dense_seconds=*/1.5);
  EXPECT_THAT(Ops(Encoded()), ElementsAre("relayout", "relayout", "matmul", "relayout"));
}

TEST_F(EncodeTest, StatesAreNoConstants) {
  const Value s = f_.Read(Add("s", Random(F32({2, 2})), Variable::Role::kState));
  f_.Return("y", f_(MatMul{}, {s, s}));
  MatMulTakes(/*columns_seconds=*/1, /*dense_seconds=*/1.5);
  EXPECT_THAT(Ops(Encoded()), ElementsAre("matmul"));
}

TEST_F(EncodeTest, PacksAConstantOnceForAllItsReaders) {
  const Value x = f_.Argument("x", F32({2, 2})), w = Constant(f_, "w", {2, 2});
  f_.Return("y", f_(MatMul{}, {f_(MatMul{}, {x, w}), w}));
  MatMulTakes(/*columns_seconds=*/1, /*dense_seconds=*/10);
  // x, w, both products and back.
  EXPECT_THAT(Ops(Encoded()), ElementsAre("relayout", "relayout", "matmul", "matmul", "relayout"));
}

TEST_F(EncodeTest, NeighboursPassTheirLayoutOn) {
  const Value x = f_.Argument("x", F32({2, 2})), w = Constant(f_, "w", {2, 2});
  f_.Return("y", f_(MatMul{}, {f_(Relu{}, {f_(MatMul{}, {x, w})}), w}));
  target_.encodings = [&](const Candidate& c) -> std::vector<EncodingChoice> {
    if (c.op.Is<Relu>()) return {All(c, nullptr, 1), All(c, columns_, 1)};
    return {All(c, columns_, 1), All(c, nullptr, 10)};
  };
  const Function& after = Encoded();
  EXPECT_EQ(EncodingOf(after, Only<Relu>(after)->first_out), columns_);
  EXPECT_THAT(Ops(after),
              ElementsAre("relayout", "relayout", "matmul", "relu", "matmul", "relayout"));
}

TEST_F(EncodeTest, TheFirstOfEquallyCheapChoicesWins) {
  const Value w = Constant(f_, "w", {2, 2});
  f_.Return("y", f_(MatMul{}, {w, w}));
  MatMulTakes(/*columns_seconds=*/1, /*dense_seconds=*/1);
  const Function& after = Encoded();
  EXPECT_EQ(EncodingOf(after, Only<MatMul>(after)->first_out), columns_);
}

TEST_F(EncodeTest, NodesWithoutChoicesGetOperandsAsTheyWere) {
  const Value x = f_.Argument("x", F32({2, 2})), w = Constant(f_, "w", {2, 2});
  f_.Return("y", f_(Relu{}, {f_(MatMul{}, {x, w})}));
  MatMulTakes(/*columns_seconds=*/1, /*dense_seconds=*/10);
  const Function& after = Encoded();
  const Node* relu = Only<Relu>(after);
  EXPECT_EQ(EncodingOf(after, relu->in[0]), nullptr);
  EXPECT_EQ(EncodingOf(after, relu->first_out), nullptr);
}

TEST_F(EncodeTest, AValueThatGoesBackIsTheFirstOne) {
  const Value x = f_.Argument("x", F32({2, 2})), w = Constant(f_, "w", {2, 2});
  f_.Return("y", f_(MatMul{}, {x, w}));
  f_.Return("z", f_(Relu{}, {x}));
  MatMulTakes(/*columns_seconds=*/1, /*dense_seconds=*/10);
  const Function& after = Encoded();
  EXPECT_EQ(Only<Relu>(after)->in[0], after.arguments()[0].value);
}

TEST_F(EncodeTest, ResultsAndUpdatesLeaveInTheFunctionsOwnLayout) {
  Variable* state = Add("s", Random(F32({2, 2})), Variable::Role::kState);
  const Value x = f_.Argument("x", F32({2, 2}));
  const Value y = f_(MatMul{}, {x, f_.Read(state)});
  f_.Store(state, y);
  f_.Return("y", y);
  MatMulTakes(/*columns_seconds=*/1, /*dense_seconds=*/10);
  const Function& after = Encoded();
  EXPECT_EQ(EncodingOf(after, Only<MatMul>(after)->first_out), columns_);
  EXPECT_EQ(EncodingOf(after, after.results()[0].value), nullptr);
  EXPECT_EQ(after.results()[0].value, after.updates()[0].value) << "brought back once";
}

}  // namespace
}  // namespace forge::ir
