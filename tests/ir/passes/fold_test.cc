// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/creation/fill.h"
#include "ir/ops/creation/shape_of.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/broadcast_to.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/movement/slice.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/reduction/reduce.h"
#include "tests/ir/passes/pass_test.h"

namespace forge::ir {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class FoldTest : public PassTest {
 protected:
  // With the numbers of symbols for the comparison.
  const Function& Folded(const Bindings& values = {}) {
    const Function& after =
        After(f_, [&](const Function& in, Function& out) { return Fold(m_, in, out); });
    ExpectSame(f_, after, {.values = values});
    return after;
  }
  void ExpectLeftAlone(const Bindings& values = {}) { EXPECT_EQ(Ops(Folded(values)), Ops(f_)); }
  Value X(Dims shape) { return f_.Argument("x", F32(std::move(shape))); }
  Value RuntimeAttribute(const AnyOp& op, Value x, std::string_view field, Value value) {
    const Function::RuntimeField runtime[] = {{field, value}};
    return f_.AddRuntimeValued(op, {&x, 1}, runtime)[0];
  }
  // Some elements of a small integer tensor.
  Value Part(Value v, int64_t begin, int64_t end) {
    return f_(Slice{.begin = {begin}, .end = {end}}, {v});
  }
};

// Without shapes, equal types are no sign of equal values.
TEST_F(FoldTest, LeavesMovementsOfWhatHasNoShapeAlone) {
  const Value x = f_.Argument("x", Type::Unranked(DType::kF32));
  f_.Return("y", f_(Transpose{{1, 0}}, {x}));
  const Value shape = f_.Argument("shape", Type::Tensor(DType::kI64, {2}));
  f_.Return("z", RuntimeAttribute(Reshape{}, x, "shape", shape));
  const Function& after =
      After(f_, [&](const Function& in, Function& out) { return Fold(m_, in, out); });
  EXPECT_EQ(Ops(after), Ops(f_));
}

// ---- constants ----------------------------------------------------------------------------------

TEST_F(FoldTest, EvaluatesSmallConstants) {
  const Value w = Constant(f_, "w", {2, 3});
  f_.Return("y", X({3, 2}) + f_(Transpose{{1, 0}}, {exp(w) * 2.0}));
  EXPECT_THAT(Ops(Folded()), ElementsAre("add"));
}

TEST_F(FoldTest, LeavesLargeConstantsToLoad) {
  f_.Return("y", X({1}) + exp(Constant(f_, "w", {4097})));
  EXPECT_THAT(Ops(Folded()), ElementsAre("exp", "add"));
}

TEST_F(FoldTest, LeavesParametersAndStatesAlone) {
  const Value p = f_.Read(Add("p", Random(F32({2})), Variable::Role::kParameter));
  const Value s = f_.Read(Add("s", Random(F32({2})), Variable::Role::kState));
  f_.Return("y", exp(p) + exp(s));
  ExpectLeftAlone();
}

TEST_F(FoldTest, DoesNotFoldAcrossASymbol) {
  const SymbolRef n = m_.SymbolNamed("n");
  const Value x = X({Dim(n), 3});
  f_.Return("y", x + f_(BroadcastTo{{Dim(n), 3}}, {Constant(f_, "w", {3})}));
  ExpectLeftAlone({{n, 4}});
}

TEST_F(FoldTest, ReshapedConstantsAreTheSameBytes) {
  Variable* w = Add("w", Random(F32({100, 100})));
  f_.Return("y", X({1}) + f_(Reshape{{10000}}, {f_.Read(w)}));
  const Function& after = Folded();
  ASSERT_THAT(Ops(after), ElementsAre("add"));
  const Variable* view = after.VariableOf(after.nodes()[0].in[1]);
  ASSERT_NE(view, nullptr);
  EXPECT_EQ(view->init->bytes.data(), w->init->bytes.data());
}

TEST_F(FoldTest, PartsOfStoredTensorsAreNoViews) {
  const HostValue whole = Random(F32({100, 100}));
  Variable* w =
      m_.AddVariable({.name = "w",
                      .type = F32({90, 50}),
                      .init = Variable::Storage{whole.shared_bytes(), whole.type(), {5, 20}}});
  f_.Return("y", X({1}) + f_(Reshape{{4500}}, {f_.Read(w)}));
  ExpectLeftAlone();
}

TEST_F(FoldTest, OneElementBecomesALiteral) {
  f_.Return("y", X({2, 3}) * Number(f_, 2.5, {1, 1}));
  const Function& after = Folded();
  ASSERT_THAT(Ops(after), ElementsAre("fill", "mul"));
  EXPECT_EQ(after.nodes()[0].op.As<Fill>()->value, 2.5);
  EXPECT_EQ(after.type(after.nodes()[0].first_out), F32({1, 1}));
}

TEST_F(FoldTest, LiteralsHoldInfinityAndNaN) {
  const Value x = X({2});
  f_.Return("a", max(x, Number(f_, -INFINITY)));
  f_.Return("b", x + Number(f_, NAN));
  EXPECT_THAT(Ops(Folded()), ElementsAre("fill", "maximum", "fill", "add"));
}

TEST_F(FoldTest, IntegersBeyondADoubleAreLiteralsToo) {
  const forge::Number big = (int64_t{1} << 53) + 1;
  const Value x = f_.Argument("x", Type::Tensor(DType::kI64, {2}));
  f_.Return("y", x + f_.Read(Add("big", HostValue::Scalar(DType::kI64, big))));
  const Function& after = Folded();
  ASSERT_THAT(Ops(after), ElementsAre("fill", "add"));
  EXPECT_EQ(after.nodes()[0].op.As<Fill>()->value, big);
}

TEST_F(FoldTest, StatesOfOneElementAreNoLiterals) {
  f_.Return("y", X({2}) * f_.Read(Add("s", Random(F32({1})), Variable::Role::kState)));
  ExpectLeftAlone();
}

TEST_F(FoldTest, VariablesWithoutBytesAreLeftAlone) {
  Variable* zeros = m_.AddVariable({.name = "computed", .type = F32({1})});
  f_.Return("y", X({2}) * exp(f_.Read(zeros)));
  ExpectLeftAlone();
}

TEST_F(FoldTest, ResultsThatAreConstantStayResults) {
  const Value w = Constant(f_, "w", {2});
  f_.Return("y", exp(w));
  f_.Return("w", w);
  EXPECT_THAT(Ops(Folded()), IsEmpty());
}

TEST_F(FoldTest, DropsWhatNobodyReads) {
  const Value x = X({2});
  exp(x);
  f_.Return("y", f_(Relu{}, {x}));
  EXPECT_THAT(Ops(Folded()), ElementsAre("relu"));
}

// ---- what changes nothing -----------------------------------------------------------------------

TEST_F(FoldTest, DropsWhatChangesNothing) {
  const SymbolRef n = m_.SymbolNamed("n");
  const Value x = X({Dim(n), 3});
  Value y = f_(Reshape{{Dim(n), 3}}, {x});
  y = f_(Cast{DType::kF32}, {y});
  y = f_(Transpose{{0, 1}}, {y});
  y = f_(BroadcastTo{{Dim(n), 3}}, {y});
  y = f_(Slice{.begin = {0}, .end = {3}, .axes = {1}}, {y});
  f_.Return("y", f_(Relu{}, {y}));
  EXPECT_THAT(Ops(Folded({{n, 2}})), ElementsAre("relu"));
}

TEST_F(FoldTest, KeepsTransposesOfSquares) {
  f_.Return("y", f_(Transpose{{1, 0}}, {X({3, 3})}));
  ExpectLeftAlone();
}

TEST_F(FoldTest, KeepsReversals) {
  f_.Return("y", f_(Slice{.begin = {-1}, .end = {-100}, .axes = {0}, .steps = {-1}}, {X({3})}));
  ExpectLeftAlone();
}

TEST_F(FoldTest, KeepsCastsThatRound) {
  f_.Return("y", f_(Cast{DType::kF32}, {f_(Cast{DType::kF16}, {X({64})})}));
  ExpectLeftAlone();
}

TEST_F(FoldTest, KeepsReshapesToOtherShapes) {
  f_.Return("y", f_(Reshape{{3, 2}}, {X({2, 3})}));
  ExpectLeftAlone();
}

// ---- shape arithmetic ---------------------------------------------------------------------------

TEST_F(FoldTest, ResolvesShapesOfNumbers) {
  const Value x = X({2, 3}), shape = f_(ShapeOf{}, {x});
  const Value flat = f_(Reduce{.kind = ReduceKind::kProd}, {shape});
  f_.Return("y", RuntimeAttribute(Reshape{}, x, "shape", flat));
  const Function& after = Folded();
  ASSERT_THAT(Ops(after), ElementsAre("reshape"));
  EXPECT_TRUE(after.nodes()[0].runtime_attributes.empty());
  EXPECT_EQ(after.type(after.results()[0].value), F32({6}));
}

TEST_F(FoldTest, ResolvesShapesOfSymbols) {
  const SymbolRef n = m_.SymbolNamed("n");
  const Value x = X({Dim(n), 3, 4}), shape = f_(ShapeOf{}, {x});
  const Value rows = Part(shape, 0, 1) * Part(shape, 1, 2);
  f_.Return("y", RuntimeAttribute(Reshape{}, x, "shape", f_(Concat{}, {rows, Integers(f_, {4})})));
  const Function& after = Folded({{n, 5}});
  ASSERT_THAT(Ops(after), ElementsAre("reshape"));
  EXPECT_EQ(after.type(after.results()[0].value), F32({Dim(n) * 3, 4}));
}

TEST_F(FoldTest, InfersWhatFollowsAResolvedShape) {
  const Value x = X({2, 3}), y = RuntimeAttribute(Reshape{}, x, "shape", Integers(f_, {3, 2}));
  f_.Return("y", exp(y));
  EXPECT_FALSE(f_.type(f_.results()[0].value).is_tensor());
  const Function& after = Folded();
  EXPECT_EQ(after.type(after.results()[0].value), F32({3, 2}));
}

TEST_F(FoldTest, ExtentsThatAreNumbersBecomeConstants) {
  const SymbolRef n = m_.SymbolNamed("n");
  const Value shape = f_(ShapeOf{}, {X({Dim(n), 3, 4})});
  f_.Return("y", Part(shape, 1, 3) * Part(shape, 2, 3));
  EXPECT_THAT(Ops(Folded({{n, 5}})), IsEmpty());
}

TEST_F(FoldTest, ExtentsThatAreSymbolsStayComputed) {
  const SymbolRef n = m_.SymbolNamed("n");
  const Value shape = f_(ShapeOf{}, {X({Dim(n), 3})});
  f_.Return("y", shape * shape);
  ExpectLeftAlone({{n, 5}});
}

TEST_F(FoldTest, LeavesFieldsLateThatDependOnData) {
  const Value shape = f_.Argument("shape", Type::Tensor(DType::kI64, {1}));
  f_.Return("y",
            RuntimeAttribute(Reshape{}, X({6}), "shape", f_(Clamp{.low = 6, .high = 6}, {shape})));
  const Function& after = Folded();
  EXPECT_THAT(Ops(after), ElementsAre("clamp", "reshape"));
  EXPECT_EQ(after.nodes()[1].runtime_attributes.size(), 1u);
}

TEST_F(FoldTest, RefusesAResolvedShapeThatDoesNotFit) {
  const Value x = X({6});
  const Function::Scope scope(
      f_, std::make_shared<Provenance>(Provenance{.node = "Reshape_4", .kind = "Reshape"}));
  f_.Return("y", RuntimeAttribute(Reshape{}, x, "shape", Integers(f_, {4})));
  Function out("main");
  EXPECT_THAT(Fold(m_, f_, out), Fails(absl::StatusCode::kInvalidArgument, "Reshape_4"));
}

// Axes are numbers, whatever their extents are called.
TEST_F(FoldTest, SymbolsAreNoNumbers) {
  const SymbolRef n = m_.SymbolNamed("n");
  const Value x = X({Dim(n), 3}), extent = Part(f_(ShapeOf{}, {x}), 0, 1);
  f_.Return("y", RuntimeAttribute(Reduce{}, f_.Argument("y", F32({2, 3})), "axes", extent));
  const Function& after = Folded({{n, 1}});
  EXPECT_EQ(Only<Reduce>(after)->runtime_attributes.size(), 1u);
}

}  // namespace
}  // namespace forge::ir
