// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/compiler/fused.h"
#include "ir/ops/compiler/relayout.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/broadcast_to.h"
#include "ir/ops/movement/pad.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/movement/slice.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/product/matmul.h"
#include "ir/type/encodings.h"
#include "tests/ir/passes/pass_test.h"

namespace forge::ir {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class HoistTest : public PassTest {
 protected:
  // Hoists f_ into load_ and main_; this many nodes move.
  void Hoisted(int moved) {
    ASSERT_THAT(f_.status(), Succeeds());
    auto load = std::make_unique<Function>("load"), main = std::make_unique<Function>("rest");
    FORGE_ASSERT_OK_AND_ASSIGN(const int count, Hoist(m_, f_, *load, *main));
    EXPECT_EQ(count, moved);
    load_ = Keep(std::move(load));
    main_ = Keep(std::move(main));
    EXPECT_THAT(load_->arguments(), IsEmpty());
  }
  // `load` computes the variables that its results are named as; `main` then gives the same.
  void ExpectSameAfterLoad(Bindings values = {}) {
    FORGE_ASSERT_OK_AND_ASSIGN(const Interpretation loaded, Run(*load_, {}));
    Oracle oracle{.values = std::move(values)};
    for (size_t i = 0; i < loaded.results.size(); ++i) {
      const Variable* v = m_.FindVariable(load_->results()[i].name);
      ASSERT_NE(v, nullptr) << load_->results()[i].name;
      EXPECT_EQ(v->type.With(EncodingRef()), loaded.results[i].type());
      oracle.computed[v] = loaded.results[i];
    }
    ExpectSame(f_, *main_, oracle);
  }

  const Function* load_ = nullptr;
  const Function* main_ = nullptr;
};

TEST_F(HoistTest, MovesWhatDependsOnConstantsAlone) {
  const Value x = f_.Argument("x", F32({2, 3})), w = Constant(f_, "w", {4, 3});
  f_.Return("y", f_(MatMul{}, {x, f_(Transpose{{1, 0}}, {w + w})}));
  Hoisted(2);
  EXPECT_THAT(Ops(*load_), ElementsAre("add", "transpose"));
  EXPECT_THAT(Ops(*main_), ElementsAre("matmul"));
  EXPECT_EQ(load_->results().size(), 1u);
  ExpectSameAfterLoad();
}

TEST_F(HoistTest, LeavesNodesWithoutResults) {
  Function& effect = *m_.AddFunction("effect");
  effect(Relu{}, {effect.Argument("a", F32({3}))});
  const Value x = f_.Argument("x", F32({3}));
  f_.Return("y", f_(Relu{}, {x}));
  ASSERT_TRUE(f_.Add(Fused{&effect}, std::array{x}).empty());
  Hoisted(0);
  EXPECT_THAT(Ops(*main_), ElementsAre("relu", "fused"));
}

TEST_F(HoistTest, LeavesLiteralsAlone) {
  const Value x = f_.Argument("x", F32({2}));
  f_.Return("y", x + f_(Reshape{{2}}, {f_(Fill{.value = 3, .shape = {2, 1}}, {})}));
  Hoisted(0);
  EXPECT_THAT(Ops(*load_), IsEmpty());
  EXPECT_EQ(Ops(*main_), Ops(f_));
  ExpectSameAfterLoad();
}

TEST_F(HoistTest, LiteralsFollowIntoLoadAndStay) {
  const Value x = f_.Argument("x", F32({2})), w = Constant(f_, "w", {2});
  const Value two = f_(Fill{.value = 2}, {});
  f_.Return("y", x * two + w * two);
  Hoisted(1);
  EXPECT_THAT(Ops(*load_), ElementsAre("fill", "mul"));
  EXPECT_THAT(Ops(*main_), ElementsAre("fill", "mul", "add"));
  ExpectSameAfterLoad();
}

TEST_F(HoistTest, LeavesWhatReadsStateOrParameters) {
  const Value state = f_.Read(Add("s", Random(F32({2})), Variable::Role::kState));
  const Value weight = f_.Read(Add("p", Random(F32({2})), Variable::Role::kParameter));
  f_.Return("y", f_(Relu{}, {state}) + f_(Relu{}, {weight}));
  Hoisted(0);
  EXPECT_EQ(Ops(*main_), Ops(f_));
  ExpectSameAfterLoad();
}

TEST_F(HoistTest, ResultsAndUpdatesMayBeComputedAtLoad) {
  Variable* state = Add("s", Random(F32({2})), Variable::Role::kState);
  const Value w = Constant(f_, "w", {2});
  f_.Return("y", w + w);
  f_.Store(state, w * w);
  Hoisted(2);
  EXPECT_THAT(Ops(*main_), IsEmpty());
  EXPECT_EQ(load_->results().size(), 2u);
  ExpectSameAfterLoad();
}

TEST_F(HoistTest, ComputesOnceWhatIsReadTwice) {
  const Value x = f_.Argument("x", F32({2})), y = f_.Argument("y", F32({2}));
  const Value w = Constant(f_, "w", {2}), sum = w + w;
  f_.Return("a", x + sum);
  f_.Return("b", y + sum);
  Hoisted(1);
  EXPECT_EQ(load_->results().size(), 1u);
  ExpectSameAfterLoad();
}

TEST_F(HoistTest, NamesStayTheModelsOwn) {
  const Value x = f_.Argument("x", F32({2})), w = Constant(f_, "w", {2}), sum = w + w;
  f_.SetName(sum, "scale");
  f_.Return("y", x + sum);
  Hoisted(1);
  EXPECT_EQ(load_->results()[0].name, "scale");
  EXPECT_NE(m_.FindVariable("scale"), nullptr);
}

// Its size is unknown before binding, and load runs before.
TEST_F(HoistTest, LeavesWhatDependsOnSymbols) {
  const SymbolRef n = m_.SymbolNamed("n");
  const Value x = f_.Argument("x", F32({Dim(n), 3})), w = Constant(f_, "w", {8, 3});
  const Value rows = f_(Slice{.begin = {0}, .end = {Dim(n)}}, {w + w});
  const Value repeated = f_(BroadcastTo{{Dim(n), 3}}, {Constant(f_, "b", {3})});
  f_.Return("y", x + f_(Relu{}, {rows}) + repeated);
  Hoisted(1);
  EXPECT_THAT(Ops(*load_), ElementsAre("add"));
  ExpectSameAfterLoad({{n, 5}});
}

// Places may hold symbols where types do not.
TEST_F(HoistTest, LeavesWhatHasSymbolsInAttributesOnly) {
  const SymbolRef n = m_.SymbolNamed("n");
  const Value x = f_.Argument("x", F32({Dim(n), 8})), w = Constant(f_, "w", {4});
  const Value shifted = f_(Pad{.before = {Dim(n)}, .after = {4 - Dim(n)}}, {w});
  ASSERT_EQ(shifted.type(), F32({8}));
  f_.Return("y", x + f_(Relu{}, {shifted}));
  Hoisted(0);
  EXPECT_THAT(Ops(*load_), IsEmpty());
  ExpectSameAfterLoad({{n, 3}});
}

TEST_F(HoistTest, ValuesOfLateFieldsMayBeComputedAtLoad) {
  const Value x = f_.Argument("x", F32({6})), shape = Integers(f_, {2, 3});
  const Function::RuntimeField runtime[] = {
      {"shape", f_(Cast{DType::kI64}, {f_(Cast{DType::kI32}, {shape})})}};
  f_.Return("y", f_.AddRuntimeValued(Reshape{}, {&x, 1}, runtime)[0]);
  Hoisted(2);
  EXPECT_THAT(Ops(*main_), ElementsAre("reshape"));
  ExpectSameAfterLoad();
}

TEST_F(HoistTest, NodesWithRuntimeValuedAttributesStay) {
  const Value w = Constant(f_, "w", {6}),
              shape = f_.Argument("shape", Type::Tensor(DType::kI64, {1}));
  const Function::RuntimeField runtime[] = {{"shape", f_(Clamp{.low = 6, .high = 6}, {shape})}};
  f_.Return("y", f_.AddRuntimeValued(Reshape{}, {&w, 1}, runtime)[0]);
  Hoisted(0);
  ExpectSameAfterLoad();
}

TEST_F(HoistTest, ChainsOfAnyLengthMove) {
  Value w = Constant(f_, "w", {1});
  constexpr int kLength = 200000;
  for (int i = 0; i < kLength; ++i) w = f_(Relu{}, {w});
  f_.Return("y", f_.Argument("x", F32({1})) + w);
  Function load("load"), main("main");
  FORGE_ASSERT_OK_AND_ASSIGN(const int moved, Hoist(m_, f_, load, main));
  EXPECT_EQ(moved, kLength);
  EXPECT_EQ(main.nodes().size(), 1u);
}

TEST_F(HoistTest, KeepsTheLayoutsThatEncodeGave) {
  FORGE_ASSERT_OK_AND_ASSIGN(const EncodingRef columns, PermutedEncoding::Make({1, 0}));
  const Value x = f_.Argument("x", F32({2, 3})), w = Constant(f_, "w", {3, 4});
  const Value packed = f_(Relayout{F32({3, 4}).With(columns)}, {w});
  const Value shaped = f_(Relu{}, {packed});
  f_.SetEncoding(shaped, columns);
  const Value y = f_(MatMul{}, {x, shaped});
  f_.SetEncoding(y, columns);
  f_.Return("y", f_(Relayout{F32({2, 4})}, {y}));
  auto load = std::make_unique<Function>("load"), main = std::make_unique<Function>("main");
  FORGE_ASSERT_OK_AND_ASSIGN(const int moved, Hoist(m_, f_, *load, *main));
  EXPECT_EQ(moved, 2);
  load_ = load.get();
  main_ = main.get();
  EXPECT_EQ(load_->type(load_->results()[0].value).encoding(), columns);
  EXPECT_EQ(m_.FindVariable(load_->results()[0].name)->type.encoding(), columns);
  const Node* product = Only<MatMul>(*main_);
  ASSERT_NE(product, nullptr);
  EXPECT_EQ(main_->type(product->in[1]).encoding(), columns);
  EXPECT_EQ(main_->type(product->first_out).encoding(), columns);
  EXPECT_EQ(main_->type(main_->results()[0].value).encoding(), nullptr);
  ExpectSameAfterLoad();
}

}  // namespace
}  // namespace forge::ir
