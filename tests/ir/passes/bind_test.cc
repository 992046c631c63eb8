// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/compiler/fused.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/movement/slice.h"
#include "ir/ops/product/matmul.h"
#include "tests/ir/passes/pass_test.h"

namespace forge::ir {
namespace {

using ::testing::HasSubstr;

class BindTest : public PassTest {
 protected:
  const Function& Bound(const Bindings& values) {
    return After(f_, [&](const Function& in, Function& out) { return Bind(m_, in, out, values); });
  }
  static void ExpectNoSymbols(const Function& f) {
    for (uint32_t v = 0; v < f.value_count(); ++v)
      EXPECT_TRUE(f.type(v).is_constant()) << f.type(v).ToText();
    for (const Node& n : f.nodes()) EXPECT_EQ(n.op, n.op.Bind({})) << n.op.ToText();
    for (const Function* body : Bodies(f)) ExpectNoSymbols(*body);
    EXPECT_THAT(ToText(f), testing::Not(HasSubstr("n *")));
  }

  SymbolRef n_ = m_.SymbolNamed("n"), h_ = m_.SymbolNamed("h");
};

TEST_F(BindTest, ReplacesSymbolsInTypesAndAttributes) {
  const Value x = f_.Argument("x", F32({Dim(n_), Dim(h_)}));
  const Value flat = f_(Reshape{{Dim(n_) * Dim(h_)}}, {x});
  const Value part = f_(Slice{.begin = {0}, .end = {Dim(n_)}}, {flat});
  f_.Return("y", part + f_(Fill{.value = 1, .shape = {Dim(n_)}}, {}));
  const Function& after = Bound({{n_, 2}, {h_, 3}});
  ExpectNoSymbols(after);
  EXPECT_EQ(after.type(after.arguments()[0].value), F32({2, 3}));
  EXPECT_EQ(after.type(after.results()[0].value), F32({2}));
  ExpectSame(f_, after, {.values = {{n_, 2}, {h_, 3}}});
}

TEST_F(BindTest, ReplacesSymbolsInBodies) {
  Function& body = *m_.AddFunction("body");
  const Value a = body.Argument("a", F32({Dim(n_), 4}));
  body.Return("r", body(Reshape{{Dim(n_) * 2, 2}}, {body(Relu{}, {a})}));
  const Value x = f_.Argument("x", F32({Dim(n_), 4}));
  f_.Return("y", f_(Fused{&body}, {x}));
  const Function& after = Bound({{n_, 3}});
  ExpectNoSymbols(after);
  ASSERT_EQ(Bodies(after).size(), 1u);
  EXPECT_EQ(Bodies(after)[0]->type(Bodies(after)[0]->results()[0].value), F32({6, 2}));
  EXPECT_FALSE(body.type(body.results()[0].value).is_constant()) << "the first body is shared";
  ExpectSame(f_, after, {.values = {{n_, 3}}});
}

TEST_F(BindTest, SymbolsOfABodyAreItsOperandsExtents) {
  const Dim k(m_.SymbolNamed("k"));
  Function& body = *m_.AddFunction("body");
  const Value a = body.Argument("a", F32({k, 4}));
  body.Return("r", body(Reshape{{k * 2, 2}}, {body(Relu{}, {a})}));
  const Value x = f_.Argument("x", F32({Dim(n_), 4})), y = f_.Argument("y", F32({7, 4}));
  f_.Return("a", f_(Fused{&body}, {x}));
  f_.Return("b", f_(Fused{&body}, {y}));
  const Function& after = Bound({{n_, 3}});
  ExpectNoSymbols(after);
  ExpectSame(f_, after, {.values = {{n_, 3}}});
}

TEST_F(BindTest, TakesTwoSymbolsForEqualWhereNumbersAre) {
  const Value x = f_.Argument("x", F32({Dim(n_)})), y = f_.Argument("y", F32({Dim(h_)}));
  f_.Return("z", x + y);
  ExpectSame(f_, Bound({{n_, 3}, {h_, 3}}), {.values = {{n_, 3}, {h_, 3}}});
}

TEST_F(BindTest, RefusesNumbersThatDoNotFit) {
  const Value x = f_.Argument("x", F32({2, Dim(n_)})), w = f_.Argument("w", F32({Dim(h_), 4}));
  const Function::Scope scope(
      f_, std::make_shared<Provenance>(Provenance{.node = "Gemm_7", .kind = "Gemm"}));
  f_.Return("y", f_(MatMul{}, {x, w}));
  Function out("main");
  EXPECT_THAT(Bind(m_, f_, out, {{n_, 3}, {h_, 5}}),
              Fails(absl::StatusCode::kInvalidArgument, "Gemm_7"));
}

TEST_F(BindTest, RefusesExtentsThatNoInputGives) {
  const Value x = f_.Argument("x", F32({16, 0}));
  f_.Return("y", f_(Reshape{{Dim(n_), 0}}, {x}));  // any n is right, of no elements
  Function out("out", &m_);
  EXPECT_THAT(Bind(m_, f_, out, {}), Fails(absl::StatusCode::kInvalidArgument,
                                           "f32[n, 0], do not follow from those of the inputs"));
}

TEST_F(BindTest, RefusesFieldsThatAreStillLate) {
  const Value x = f_.Argument("x", F32({6}));
  const Value shape = f_.Argument("shape", Type::Tensor(DType::kI64, {2}));
  const Function::RuntimeField runtime[] = {{"shape", shape}};
  const Function::Scope scope(
      f_, std::make_shared<Provenance>(Provenance{.node = "Reshape_3", .kind = "Reshape"}));
  f_.Return("y", f_.AddRuntimeValued(Reshape{}, {&x, 1}, runtime)[0]);
  Function out("main");
  EXPECT_THAT(Bind(m_, f_, out, {}),
              Fails(absl::StatusCode::kInvalidArgument, "Reshape_3 (Reshape)"));
}

TEST_F(BindTest, CarriesNamesVariablesAndUpdatesOver) {
  Variable* state = Add("s", Random(F32({4})), Variable::Role::kState);
  const Value x = f_.Argument("x", F32({Dim(n_)}));
  const Value sum = f_.Read(state) + x;
  f_.SetName(sum, "sum_0");
  f_.Store(state, sum);
  f_.Return("y", sum);
  const Function& after = Bound({{n_, 4}});
  EXPECT_EQ(after.NameOf(after.results()[0].value), "sum_0");
  ASSERT_EQ(after.updates().size(), 1u);
  EXPECT_EQ(after.updates()[0].variable, state);
  ExpectSame(f_, after, {.values = {{n_, 4}}});
}

TEST_F(BindTest, BindsOneFunctionManyTimes) {
  const Value x = f_.Argument("x", F32({Dim(n_), 2}));
  f_.Return("y", f_(Reshape{{Dim(n_) * 2}}, {x}));
  for (int64_t n : {1, 4, 9}) {
    const Function& after = Bound({{n_, n}});
    EXPECT_EQ(after.type(after.results()[0].value), F32({2 * n}));
    ExpectSame(f_, after, {.values = {{n_, n}}});
  }
}

}  // namespace
}  // namespace forge::ir
