// SPDX-License-Identifier: Apache-2.0
// Each test damages a good module in one way. Functions cannot be damaged through their interface,
// so the tests write through it.
#include <gtest/gtest.h>

#include "ir/graph/module.h"
#include "ir/ops/compiler/fused.h"
#include "ir/ops/compiler/relayout.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/reduction/softmax.h"
#include "ir/type/encodings.h"
#include "tests/support/ir_values.h"
#include "tests/support/status_matchers.h"

namespace forge::ir {
namespace {

class VerifyTest : public ::testing::Test {
 protected:
  VerifyTest() {
    const Dim n(m_.SymbolNamed("n"));
    w_ = m_.AddVariable({.name = "w",
                         .type = F32({4}),
                         .init = Variable::Storage{Bytes(std::vector<uint8_t>(16)), F32({4}), {}}});
    state_ = m_.AddVariable({.name = "s", .role = Variable::Role::kState, .type = F32({4})});
    body_ = m_.AddFunction("body");
    body_->Return("y", (*body_)(Relu{}, {body_->Argument("x", F32({4}))}));
    f_ = m_.AddFunction("main");
    const Value x = f_->Argument("x", F32({4}));
    f_->Argument("y", F32({n, 4}));
    const Value sum = (*f_)(Add{}, {x, f_->Read(w_)});
    const Value out = (*f_)(Fused{body_}, {sum});
    f_->Store(state_, out);
    f_->Return("y", out);
  }

  void SetUp() override { ASSERT_THAT(Verify(m_), Succeeds()); }

  Node& NodeAt(size_t i) { return const_cast<Node&>(f_->nodes()[i]); }
  template <class T>
  static T& Writable(const T& t) {
    return const_cast<T&>(t);
  }
  void ExpectRefused(std::string_view part) {
    EXPECT_THAT(Verify(m_), Fails(absl::StatusCode::kInternal, part));
  }

  Module m_;
  Variable *w_, *state_;
  Function *body_, *f_;
};

TEST_F(VerifyTest, OperandsMustExist) {
  NodeAt(0).in[0] = 1000;
  ExpectRefused("function main: node 0 add: value 1000 is used before it is made");
}

TEST_F(VerifyTest, OperandsMustComeFirst) {
  NodeAt(0).in[0] = NodeAt(1).first_out;
  ExpectRefused("is used before it is made");
}

TEST_F(VerifyTest, OperandsMustBeThere) {
  NodeAt(0).in[1] = kAbsent;
  ExpectRefused("add: operand");
}

TEST_F(VerifyTest, ResultsMustBeTheirOwn) {
  NodeAt(1).first_out = NodeAt(0).first_out;
  ExpectRefused("is defined twice");
}

TEST_F(VerifyTest, ResultCountsMustAgree) {
  NodeAt(0).outs = 2;
  ExpectRefused("has 2 results instead of 1");
}

TEST_F(VerifyTest, TypesMustBeAsInferred) {
  Writable(f_->type(NodeAt(0).first_out)) = F32({5});
  ExpectRefused("function main: node 0 add: result 0 is f32[5] instead of f32[4]");
}

TEST_F(VerifyTest, OriginsMustAgree) {
  Writable(f_->origin(NodeAt(0).first_out)).index = 1;
  ExpectRefused("has another origin");
}

TEST_F(VerifyTest, AttributesMustBeRight) {
  NodeAt(0).op = Softmax{.axis = 4};
  ExpectRefused("node 0 softmax");
}

TEST_F(VerifyTest, RuntimeValuedAttributesMustExist) {
  NodeAt(0).op = Reshape{};
  NodeAt(0).in.resize(1);
  NodeAt(0).runtime_attributes = {{7, 0}};
  ExpectRefused("runtime-valued attribute 7 does not exist");
  NodeAt(0).runtime_attributes = {{0, 900}};
  ExpectRefused("value 900 is used before it is made");
}

TEST_F(VerifyTest, VariablesMustBeTheModules) {
  Variable other{.name = "w", .type = F32({4})};
  Writable(f_->reads()[0]).variable = &other;
  ExpectRefused("a variable is not of this module");
}

TEST_F(VerifyTest, VariablesMustBeReadAsTheyAre) {
  w_->type = Type::Tensor(DType::kF16, {4});
  w_->init.reset();
  ExpectRefused("variable w is f16[4] and is read as f32[4]");
}

TEST_F(VerifyTest, StoresMustFit) {
  state_->type = Type::Tensor(DType::kF16, {4});
  ExpectRefused("variable s is f16[4] and stores f32[4]");
}

TEST_F(VerifyTest, StoragesMustHaveTheirSize) {
  w_->init->bytes = Bytes(std::vector<uint8_t>(15));
  ExpectRefused("variable w: its storage is f32[4], 16 bytes, and holds 15");
  w_->init->whole = F32({INT64_MAX, 4});
  ExpectRefused("overflows 64 bits");
}

TEST_F(VerifyTest, BoxesMustLieInside) {
  w_->init = Variable::Storage{Bytes(std::vector<uint8_t>(24)), F32({6}), {2}};
  EXPECT_THAT(Verify(m_), Succeeds());
  for (int64_t begin : {int64_t{3}, int64_t{-1}, INT64_MAX}) {
    w_->init->begin = {begin};
    ExpectRefused("variable w: its box does not fit into f32[6]");
  }
  w_->init->begin = {0, 0};
  ExpectRefused("its box does not fit");
}

TEST_F(VerifyTest, NamesMustBeUnique) {
  state_->name = "w";
  ExpectRefused("the variable name 'w' is empty or used twice");
  state_->name = "";
  ExpectRefused("the variable name '' is empty");
  state_->name = "s";
  Writable(f_->arguments()[1]).name = "x";
  ExpectRefused("the argument name 'x'");
  Writable(f_->arguments()[1]).name = "y";
  Writable(f_->results()[0]).name = "";
  ExpectRefused("the result name ''");
}

TEST_F(VerifyTest, BodiesMustBeTheModules) {
  Function other("other");
  NodeAt(1).op = Fused{&other};
  ExpectRefused("a body is not of this module");
  NodeAt(1).op = Fused{nullptr};
  ExpectRefused("a body is not of this module");
}

TEST_F(VerifyTest, BodiesMustNotFormCycles) {
  NodeAt(1).op = Fused{f_};
  ExpectRefused("function main: its bodies form a cycle");
}

TEST_F(VerifyTest, SymbolsMustBeTheModules) {
  const Dim other(std::make_shared<Symbol>(Symbol{.name = "other"}));
  f_->Argument("z", F32({other}));
  ExpectRefused("the symbol other is not of this module");
}

TEST_F(VerifyTest, SymbolsMustHaveValues) {
  Writable(*m_.symbols()[0]).max = -1;
  ExpectRefused("the symbol n has no values");
}

TEST_F(VerifyTest, DimensionsMustNotBeNegative) {
  f_->Argument("z", F32({-1}));
  ExpectRefused("the dimension -1 is negative");
}

TEST_F(VerifyTest, ResultsMayBeLaidOutAnyhow) {
  const EncodingRef columns = *PermutedEncoding::Make({1, 0});
  Function& g = *m_.AddFunction("laid out");
  const Value x = g.Argument("x", F32({2, 3}));
  const Value y = g(Relayout{.to = x.type().With(columns)}, {x});
  const Value z = g(Relu{}, {y});
  g.SetEncoding(z, columns);
  g.Return("z", z);
  ASSERT_THAT(Verify(m_), Succeeds());
  // A relayout's result is what it says, and no choice.
  g.SetEncoding(y, nullptr);
  ExpectRefused("relayout");
}

TEST_F(VerifyTest, ABasesVariablesAndSymbolsMayBeNamed) {
  Module bound(&m_);
  Function& g = *bound.AddFunction("main");
  g.Return("y", g(Relu{}, {g.Read(w_)}));
  g.Return("n", g.Argument("x", F32({Dim(m_.FindSymbol("n"))})));
  EXPECT_THAT(Verify(bound), Succeeds());
  Module stranger;
  Function& h = *stranger.AddFunction("main");
  h.Return("y", h(Relu{}, {h.Read(w_)}));
  EXPECT_THAT(Verify(stranger), Fails(absl::StatusCode::kInternal, "not of this module"));
}

TEST_F(VerifyTest, AFunctionVerifiesBeforeItsModuleHoldsIt) {
  Function loose("next", &m_);
  loose.Return("y", loose(Relu{}, {loose.Read(w_)}));
  EXPECT_THAT(Verify(loose), Succeeds());
  Function nobodys("next");
  nobodys.Return("y", nobodys(Relu{}, {nobodys.Read(w_)}));
  EXPECT_THAT(Verify(nobodys), Fails(absl::StatusCode::kInternal,
                                     "function next: a variable is not of this module"));
}

TEST_F(VerifyTest, FailedFunctionsAreRefused) {
  f_->Fail(InvalidArgument("no good"));
  EXPECT_THAT(Verify(m_), Fails(absl::StatusCode::kInvalidArgument, "function main: no good"));
}

}  // namespace
}  // namespace forge::ir
