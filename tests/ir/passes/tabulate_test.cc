// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/indexing/lookup.h"
#include "tests/ir/passes/pass_test.h"

namespace forge::ir {
namespace {

class TabulateTest : public PassTest {
 protected:
  Value Codes(DType t, Dims shape = {2, 300}) {
    const Value x = f_.Argument("x", F32(std::move(shape))) * 64.0;
    return f_(Cast{t}, {t == DType::kU8 ? x + 128.0 : x});
  }
  // Of six ops.
  Value Activation(Value x) {
    return f_(Tanh{}, {(f_(Cast{DType::kF32}, {x}) - 100.0) * 0.01}) * 3.0 + 0.5;
  }
  const Function& Tabulated(const FakeTarget& target = {}) {
    return After(f_, [&](const Function& in, Function& out) { return Tabulate(in, out, target); });
  }
  void ExpectTables(int count) {
    const Function& after = Tabulated();
    int tables = 0;
    for (const Node& n : after.nodes()) tables += n.op.Is<Lookup>();
    EXPECT_EQ(tables, count) << ToText(after);
    ExpectSame(f_, after);
  }
};

TEST_F(TabulateTest, AChainOfOpsOnUnsignedBytes) {
  f_.Return("y", Activation(Codes(DType::kU8)));
  ExpectTables(1);
}

TEST_F(TabulateTest, AChainOfOpsOnSignedBytes) {
  f_.Return("y", Activation(Codes(DType::kI8)));
  ExpectTables(1);
}

TEST_F(TabulateTest, ThroughBytesInBetweenAndBranchesThatMeet) {
  const Value a = Activation(Codes(DType::kU8)), b = f_(Cast{DType::kI8}, {a * 20.0});
  f_.Return("y", f_(Cast{DType::kF32}, {b}) * a);
  ExpectTables(1);
}

TEST_F(TabulateTest, EachValueThatSomethingElseReads) {
  const Value a = Activation(Codes(DType::kU8));
  f_.Return("a", a);
  f_.Return("y", a + f_.Argument("z", F32({2, 300})));
  f_.Return("b", f_(Cast{DType::kU8}, {a * 50.0}));
  ExpectTables(2);
}

TEST_F(TabulateTest, FewOpsAreComputed) {
  f_.Return("y", (f_(Cast{DType::kF32}, {Codes(DType::kU8)}) - 100.0) * 0.01);
  ExpectTables(0);
}

TEST_F(TabulateTest, NotOfTwoTensorsNorOfWiderNumbers) {
  const Value x = Codes(DType::kU8);
  const Value y = f_(Cast{DType::kU8}, {f_.Argument("y", F32({2, 300})) * 50.0});
  f_.Return("sum", f_(Tanh{},
                      {(f_(Cast{DType::kF32}, {x}) * 0.1 + f_(Cast{DType::kF32}, {y}) * 0.1) * 0.2 -
                       1.0}));
  f_.Return("wide", Activation(f_(Cast{DType::kI16}, {f_.Argument("z", F32({2, 300}))})));
  ExpectTables(0);
}

TEST_F(TabulateTest, NotWhereAShapeGrows) {
  const Value x = Codes(DType::kU8, {300}), ones = f_(Fill{2, DType::kF32, {4, 300}}, {});
  f_.Return("y", f_(Tanh{}, {f_(Cast{DType::kF32}, {x}) * 0.1 - 1.0}) * ones * 0.5 + 1.0);
  ExpectTables(0);
}

TEST_F(TabulateTest, OnlyWhereTheTargetReadsTables) {
  f_.Return("y", Activation(Codes(DType::kU8)));
  FakeTarget target;
  target.supports = [](const Candidate&) { return Verdict::No("no kernel"); };
  for (const Node& n : Tabulated(target).nodes()) EXPECT_FALSE(n.op.Is<Lookup>());
}

// A file may hold a chain of any length.
TEST_F(TabulateTest, ALongChain) {
  Value y = f_(Cast{DType::kF32}, {Codes(DType::kU8)});
  for (int i = 0; i < 100000; ++i) y = f_(Neg{}, {y});
  f_.Return("y", y);
  Function made("made", &m_);
  EXPECT_THAT(Tabulate(f_, made, FakeTarget()), Succeeds());
}

}  // namespace
}  // namespace forge::ir
