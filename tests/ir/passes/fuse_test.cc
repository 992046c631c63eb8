// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"
#include "ir/ops/compiler/fused.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/broadcast_to.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/movement/slice.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/norm/layer_norm.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/ops/reduction/softmax.h"
#include "ir/ops/spatial/conv.h"
#include "tests/ir/passes/pass_test.h"

namespace forge::ir {
namespace {

using ::testing::ElementsAre;

class FuseTest : public PassTest {
 protected:
  const Function& FusedWith(const Target& target) {
    const Function& after = After(
        f_, [&](const Function& in, Function& out) { return Fuse(m_, in, out, target).status(); });
    ExpectSame(f_, after);
    return after;
  }
  const Function& FusedFully() { return FusedWith(target_); }
  void ExpectLeftAlone() { EXPECT_EQ(Ops(FusedFully()), Ops(f_)); }
  // One region of these ops, and nothing besides.
  void ExpectOneRegion(const std::vector<std::string>& ops) {
    const Function& after = FusedFully();
    ASSERT_THAT(Ops(after), ElementsAre("fused"));
    EXPECT_EQ(Ops(*Bodies(after)[0]), ops);
  }
  Value X(Dims shape) { return f_.Argument("x", F32(std::move(shape))); }

  FakeTarget target_;
};

// ---- what is gathered ---------------------------------------------------------------------------

TEST_F(FuseTest, ElementWiseChains) {
  const Value x = X({2, 3});
  f_.Return("y", sqrt(exp(f_(Relu{}, {x}))));
  ExpectOneRegion({"relu", "exp", "sqrt"});
}

TEST_F(FuseTest, ElementWiseValuesThatAreResults) {
  const Value x = X({2, 3}), first = exp(x);
  f_.Return("first", first);
  f_.Return("y", sqrt(first));
  ExpectOneRegion({"exp", "sqrt"});
}

TEST_F(FuseTest, ElementWiseValuesThatAreStored) {
  const Value x = X({2, 3}), first = exp(x);
  f_.Store(Add("s", Random(F32({2, 3})), Variable::Role::kState), first);
  f_.Return("y", sqrt(first));
  ExpectOneRegion({"exp", "sqrt"});
}

// As exporters write it out: it needs no op of its own to be one kernel.
TEST_F(FuseTest, SmallResultsOfOneShapeThatNobodyReads) {
  const Value x = X({4}), rate = f_.Argument("rate", F32({}));
  for (const char* name : {"a", "b", "c"}) {
    Variable* v = Add(name, Random(F32({4})), Variable::Role::kState);
    f_.Store(v, f_.Read(v) - rate * exp(x));
  }
  Variable* other = Add("other", Random(F32({5})), Variable::Role::kState);
  f_.Store(other, f_.Read(other) * 2.0);
  const Function& after = FusedFully();
  ASSERT_THAT(Ops(after), ElementsAre("fused", "fused"));
}

TEST_F(FuseTest, NotTooManyOfThem) {
  const Value x = X({4});
  for (int i = 0; i < 100; ++i) {
    Variable* v = Add(fmt::format("v{}", i), Random(F32({4})), Variable::Role::kState);
    f_.Store(v, sqrt(exp(f_.Read(v) + x)));
  }
  const Function& after = FusedFully();
  EXPECT_EQ(after.nodes().size(), 3u);
  for (const Function* body : Bodies(after)) EXPECT_LE(body->nodes().size(), 128u);
}

TEST_F(FuseTest, ARotaryEmbedding) {
  const Value x = X({2, 5, 8}), cos = f_.Argument("cos", F32({5, 8}));
  const Value sin = f_.Argument("sin", F32({5, 8}));
  const Value first = f_(Slice{.begin = {0}, .end = {4}, .axes = {2}}, {x});
  const Value second = f_(Slice{.begin = {4}, .end = {8}, .axes = {2}}, {x});
  const Value turned = f_(Concat{.axis = 2}, {f_(Neg{}, {second}), first});
  f_.Return("y", x * cos + turned * sin);
  ASSERT_THAT(Ops(FusedFully()), ElementsAre("fused"));
}

TEST_F(FuseTest, AnAnchorWithWhatFollows) {
  const Value x = X({2, 3}), w = f_.Argument("w", F32({3, 4})), b = f_.Argument("b", F32({4}));
  f_.Return("y", f_(Relu{}, {f_(MatMul{}, {x, w}) + b}));
  ExpectOneRegion({"matmul", "add", "relu"});
}

TEST_F(FuseTest, AnAnchorWithWhatFollowsEachOfItsResults) {
  const Values norm = f_.Add(LayerNorm{.statistics = true}, std::array{X({2, 3})});
  f_.Return("y", f_(Relu{}, {norm[0]}));
  f_.Return("mean", norm[1]);
  f_.Return("variance", 1.0 / (norm[2] * norm[2]));
  const Function& after = FusedFully();
  ASSERT_THAT(Ops(after), ElementsAre("fused"));
  EXPECT_EQ(Bodies(after)[0]->results().size(), 3u);
}

TEST_F(FuseTest, AnAnchorWithWhatComesBeforeWhereEachElementIsReadOnce) {
  const Value x = X({2, 3});
  f_.Return("y", f_(Softmax{}, {exp(x)}));
  ExpectOneRegion({"exp", "softmax"});
}

TEST_F(FuseTest, CheapOpsBeforeAProductOfFewRows) {
  const Value x = X({1, 2, 4, 4}), scale = f_.Argument("s", F32({1, 2, 1, 1}));
  f_.Return("y", f_(Conv{}, {x * scale, f_.Argument("w", F32({16, 2, 1, 1}))}));
  ExpectOneRegion({"mul", "conv"});
}

TEST_F(FuseTest, NoCheapOpsWhereTheTargetLoadsInstead) {
  const Value x = X({1, 2, 4, 4}), scale = f_.Argument("s", F32({1, 2, 1, 1}));
  f_.Return("y", f_(Conv{}, {x * scale, f_.Argument("w", F32({16, 2, 1, 1}))}));
  target_.recomputation.reads = 8;
  ExpectLeftAlone();
  target_.recomputation = {.ops = 0};
  ExpectLeftAlone();
}

TEST_F(FuseTest, BytesThatAreMadeNumbersBeforeAProductOfFewRows) {
  const Value x = f_.Argument("x", Type::Tensor(DType::kI8, {4, 8}));
  const Value zero = f_.Argument("z", F32({})), scale = f_.Argument("s", F32({}));
  const Value numbers = (f_(Cast{DType::kF32}, {x}) - zero) * scale;
  f_.Return("y", f_(MatMul{}, {numbers, f_.Argument("w", F32({8, 16}))}));
  ExpectOneRegion({"cast", "sub", "mul", "matmul"});
}

TEST_F(FuseTest, MovementBeforeAnAnchor) {
  const Value x = X({3, 2}), w = f_.Argument("w", F32({3, 4}));
  f_.Return("y", f_(MatMul{}, {f_(Transpose{{1, 0}}, {x}), w}));
  ExpectOneRegion({"transpose", "matmul"});
}

TEST_F(FuseTest, MovementAfterAnAnchor) {
  f_.Return("y", f_(Transpose{{1, 0}}, {f_(Softmax{}, {X({2, 3})})}));
  ExpectOneRegion({"softmax", "transpose"});
}

TEST_F(FuseTest, HeadsSplitAfterAProductAndWhatFollows) {
  const Value x = X({3, 4}), w = f_.Argument("w", F32({4, 6})), scale = f_.Argument("s", F32({3}));
  const Value heads = f_(Reshape{.shape = {3, 2, 3}}, {f_(MatMul{}, {x, w})});
  f_.Return("y", f_(Transpose{{1, 0, 2}}, {heads}) * scale);
  ExpectOneRegion({"matmul", "reshape", "transpose", "mul"});
}

// A store in another order costs more than a load: of two anchors the second takes the movement.
TEST_F(FuseTest, MovementBetweenAnchorsIntoTheLoadsOfTheSecond) {
  const Value x = X({3, 2}), w = f_.Argument("w", F32({3, 4}));
  f_.Return("y", f_(MatMul{}, {f_(Transpose{{1, 0}}, {f_(Softmax{}, {x})}), w}));
  const Function& after = FusedFully();
  ASSERT_THAT(Ops(after), ElementsAre("softmax", "fused"));
  EXPECT_THAT(Ops(*Bodies(after)[0]), ElementsAre("transpose", "matmul"));
}

TEST_F(FuseTest, MovementThatTwoAnchorsReadIntoTheStoresOfTheFirst) {
  const Value moved = f_(Transpose{{1, 0}}, {f_(Softmax{}, {X({2, 3})})});
  f_.Return("y", f_(Softmax{}, {moved}));
  f_.Return("z", f_(Softmax{.axis = 0}, {moved}));
  const Function& after = FusedFully();
  ASSERT_THAT(Ops(after), ElementsAre("fused", "softmax", "softmax"));
  EXPECT_THAT(Ops(*Bodies(after)[0]), ElementsAre("softmax", "transpose"));
}

TEST_F(FuseTest, LiteralsIntoEachRegionThatReadsThem) {
  const Value x = X({2, 3}), two = f_(Fill{.value = 2}, {});
  f_.Return("a", f_(Softmax{}, {x}) * two);
  f_.Return("b", f_(Softmax{.axis = 0}, {x}) + two);
  const Function& after = FusedFully();
  ASSERT_THAT(Ops(after), ElementsAre("fused", "fused"));
  EXPECT_THAT(Ops(*Bodies(after)[0]), ElementsAre("softmax", "fill", "mul"));
  EXPECT_THAT(Ops(*Bodies(after)[1]), ElementsAre("softmax", "fill", "add"));
}

TEST_F(FuseTest, LiteralsThatAreResultsStayToo) {
  const Value two = f_(Fill{.value = 2, .shape = {3}}, {});
  f_.Return("two", two);
  f_.Return("y", X({3}) * two);
  EXPECT_THAT(Ops(FusedFully()), ElementsAre("fill", "fused"));
}

TEST_F(FuseTest, AnAnchorsOwnValueMayLeaveTheRegionAsWell) {
  const Value x = X({2, 3}), soft = f_(Softmax{}, {x});
  f_.Return("soft", soft);
  f_.Return("y", exp(soft));
  const Function& after = FusedFully();
  ASSERT_THAT(Ops(after), ElementsAre("fused"));
  EXPECT_EQ(after.nodes()[0].outs, 2);
}

TEST_F(FuseTest, ASkipConnectionJoinsItsAnchorOnce) {
  const Value x = X({2, 3}), first = f_(Relu{}, {f_(Softmax{}, {x})});
  f_.Return("y", f_(Softmax{.axis = 0}, {first}) + first);
  EXPECT_THAT(Ops(FusedFully()), ElementsAre("fused", "fused"));
}

TEST_F(FuseTest, RegionsKnowWhatTheyAreMadeOf) {
  const Value x = X({2, 3});
  Value soft;
  {
    const Function::Scope scope(f_, std::make_shared<Provenance>(Provenance{.node = "Softmax_0"}));
    soft = f_(Softmax{}, {x});
  }
  const Function::Scope scope(f_, std::make_shared<Provenance>(Provenance{.node = "Exp_1"}));
  f_.Return("y", exp(soft));
  const Function& after = FusedFully();
  ASSERT_THAT(Ops(after), ElementsAre("fused"));
  EXPECT_EQ(after.nodes()[0].from->ToText(), "Softmax_0 + Exp_1");
}

TEST_F(FuseTest, OpenDimensionsStayOpen) {
  const SymbolRef n = m_.SymbolNamed("n");
  const Value x = X({Dim(n), 3});
  f_.Return("y", exp(f_(Softmax{}, {x})));
  const Function& after = After(
      f_, [&](const Function& in, Function& out) { return Fuse(m_, in, out, target_).status(); });
  EXPECT_THAT(Ops(after), ElementsAre("fused"));
  ExpectSame(f_, after, {.values = {{n, 4}}});
}

// ---- what is left alone -------------------------------------------------------------------------

TEST_F(FuseTest, NodesAlone) {
  f_.Return("y", f_(Softmax{}, {X({2, 3})}));
  ExpectLeftAlone();
}

TEST_F(FuseTest, ElementWiseValuesOfAnotherShapeThatAreResults) {
  const Value x = X({2, 3}), first = exp(f_.Argument("row", F32({3})));
  f_.Return("first", first);
  f_.Return("y", x + first);
  ExpectLeftAlone();
}

TEST_F(FuseTest, ElementWiseValuesThatTwoAnchorsRead) {
  const Value x = X({2, 3}), first = exp(x);
  f_.Return("y", f_(Softmax{}, {first}));
  f_.Return("z", f_(Softmax{.axis = 0}, {first}));
  ExpectLeftAlone();
}

TEST_F(FuseTest, TwoAnchors) {
  const Value x = X({2, 3});
  f_.Return("y", f_(Softmax{.axis = 0}, {f_(Softmax{}, {x})}));
  ExpectLeftAlone();
}

TEST_F(FuseTest, TwoAnchorsWhereTheTargetTakesThem) {
  const Value x = X({2, 3}), w = f_.Argument("w", F32({3, 4}));
  f_.Return("y", f_(Relu{}, {f_(MatMul{}, {f_(LayerNorm{}, {x}), w})}));
  target_.fuses_anchors = [](const Function& body) {
    EXPECT_EQ(Ops(body), (std::vector<std::string>{"layer_norm", "matmul"}));
    return Verdict::Yes("a norm and a product");
  };
  ExpectOneRegion({"layer_norm", "matmul", "relu"});
}

// What follows the second has the shape of its result, not of the first one's.
TEST_F(FuseTest, AReductionOfAProductAndWhatFollowsIt) {
  const Value x = X({2, 3}), w = f_.Argument("w", F32({3, 4}));
  const Value rows = f_(Relu{}, {f_(MatMul{}, {x, w})});
  f_.Return("y", f_(Sqrt{}, {ReduceAxes(ReduceKind::kSum, rows, {1})}));
  target_.fuses_anchors = [](const Function&) { return Verdict::Yes("a product and its sums"); };
  ExpectOneRegion({"matmul", "relu", "reduce", "sqrt"});
}

TEST_F(FuseTest, AnAnchorThatOthersReadToo) {
  const Value x = X({2, 3}), w = f_.Argument("w", F32({3, 4})), norm = f_(LayerNorm{}, {x});
  f_.Return("norm", norm);
  f_.Return("y", f_(MatMul{}, {norm, w}));
  target_.fuses_anchors = [](const Function&) { return Verdict::Yes("any"); };
  Function out("out", &m_);
  FORGE_ASSERT_OK_AND_ASSIGN(const auto gaps, Fuse(m_, f_, out, target_));
  EXPECT_EQ(Ops(out), Ops(f_));
  ASSERT_EQ(gaps.size(), 1u);
  EXPECT_EQ(gaps[0].why, "others read the first too");
}

TEST_F(FuseTest, TwoAnchorsThatOneSumReads) {
  const Value x = X({2, 3});
  f_.Return("y", f_(Softmax{.axis = 0}, {x}) + f_(Softmax{}, {x}));
  const Function& after = FusedFully();
  ASSERT_THAT(Ops(after), ElementsAre("softmax", "fused"));
  EXPECT_THAT(Ops(*Bodies(after)[0]), ElementsAre("softmax", "add"));
}

TEST_F(FuseTest, WhatWouldBeComputedAgainForEachTap) {
  const Value x = X({1, 2, 4, 4}), w = f_.Argument("w", F32({3, 2, 3, 3}));
  f_.Return("y", f_(Conv{}, {exp(x), w}));
  ExpectLeftAlone();
}

TEST_F(FuseTest, WhatWouldBeComputedAgainForEachTile) {
  const Value x = X({1, 2, 4, 4}), scale = f_.Argument("s", F32({1, 2, 1, 1}));
  f_.Return("y", f_(Conv{}, {x * scale, f_.Argument("w", F32({256, 2, 1, 1}))}));
  ExpectLeftAlone();
}

TEST_F(FuseTest, MovementAfterAnAnchorThatTheTargetCannotStore) {
  f_.Return("y", f_(Transpose{{1, 0}}, {f_(Softmax{}, {X({2, 3})})}));
  target_.fuses = [](const Function&) { return Verdict::No("never"); };
  ExpectLeftAlone();
}

TEST_F(FuseTest, ElementsThatMovementAfterAnAnchorRepeats) {
  f_.Return("y", f_(BroadcastTo{.shape = {2, 2, 3}}, {f_(Softmax{}, {X({2, 3})})}));
  ExpectLeftAlone();
}

TEST_F(FuseTest, ElementWiseOpsOfAnotherShapeAfterAnAnchor) {
  const Value x = X({1, 3}), wide = f_.Argument("wide", F32({2, 3}));
  f_.Return("y", f_(Softmax{}, {x}) + wide);
  ExpectLeftAlone();
}

TEST_F(FuseTest, LiteralsAlone) {
  f_.Return("y", f_(Fill{.value = 2, .shape = {3}}, {}));
  ExpectLeftAlone();
}

TEST_F(FuseTest, NodesWhoseFieldsAreLate) {
  const Value x = X({2, 3}), axis = f_.Argument("axis", Type::Tensor(DType::kI64, {1}));
  const Function::RuntimeField runtime[] = {{"axes", f_(Clamp{.low = 1, .high = 1}, {axis})}};
  f_.Return("y", exp(f_.AddRuntimeValued(Reduce{}, std::array{exp(x)}, runtime)[0]));
  ExpectLeftAlone();
}

// ---- the target's word --------------------------------------------------------------------------

TEST_F(FuseTest, NothingThatTheTargetRefuses) {
  const Value x = X({2, 3});
  f_.Return("y", sqrt(exp(f_(Softmax{}, {x}))) * 2.0);
  target_.fuses = [](const Function&) { return Verdict::No("never"); };
  ExpectLeftAlone();
}

TEST_F(FuseTest, AsMuchAsTheTargetTakes) {
  const Value x = X({2, 3});
  f_.Return("y", exp(sqrt(exp(exp(f_(Relu{}, {x}))))));
  target_.fuses = [](const Function& body) {
    return body.nodes().size() <= 2 ? Verdict::Yes("two") : Verdict::No("more than two");
  };
  const Function& after = FusedFully();
  ASSERT_THAT(Ops(after), ElementsAre("fused", "fused", "exp"));
  for (const Function* body : Bodies(after)) EXPECT_EQ(body->nodes().size(), 2u);
}

TEST_F(FuseTest, TheTargetSeesExactlyWhatIsMade) {
  const Value x = X({2, 3});
  f_.Return("y", exp(f_(Softmax{}, {x})) * 2.0);
  std::string last;
  target_.fuses = [&](const Function& body) {
    last = ToText(body).substr(ToText(body).find('('));
    return Verdict::Yes("any");
  };
  const Function& after = FusedFully();
  ASSERT_THAT(Ops(after), ElementsAre("fused"));
  const std::string made = ToText(*Bodies(after)[0]);
  EXPECT_EQ(made.substr(made.find('(')), last);
}

TEST_F(FuseTest, NoRegionBeyondItsLargestSize) {
  Value x = X({2});
  for (int i = 0; i < 100; ++i) x = f_(Relu{}, {x});
  f_.Return("y", x);
  const Function& after = FusedFully();
  EXPECT_EQ(after.nodes().size(), 3u);
  for (const Function* body : Bodies(after)) EXPECT_LE(body->nodes().size(), 48u);
}

std::vector<std::string> TextsOf(const std::vector<FusionGap>& gaps) {
  std::vector<std::string> out;
  for (const FusionGap& g : gaps) out.push_back(g.from + " -> " + g.to + ": " + g.why);
  return out;
}

TEST_F(FuseTest, SaysWhyWhatIsLeftApart) {
  const Value x = X({1, 2, 4, 4}), w = f_.Argument("w", F32({3, 2, 3, 3}));
  const Value small = f_(Conv{}, {exp(x), w});
  f_.Return("y", f_(Softmax{}, {f_(Relu{}, {small})}));
  target_.fuses = [](const Function& body) {
    return body.nodes().size() > 1 ? Verdict::No("no kernel") : Verdict::Yes("any");
  };
  Function out("out", &m_);
  FORGE_ASSERT_OK_AND_ASSIGN(const auto gaps, Fuse(m_, f_, out, target_));
  EXPECT_THAT(TextsOf(gaps),
              ElementsAre("exp -> conv: elements would be computed for each of many reads",
                          "conv -> relu: no kernel", "relu -> softmax: no kernel"));
}

TEST_F(FuseTest, SaysNothingOfWhatIsTogether) {
  const Value x = X({2, 3});
  f_.Return("y", f_(Softmax{.axis = 0}, {f_(Softmax{}, {exp(x)})}));
  Function out("out", &m_);
  target_.fuses_anchors = [](const Function&) { return Verdict::No("two anchors"); };
  FORGE_ASSERT_OK_AND_ASSIGN(const auto gaps, Fuse(m_, f_, out, target_));
  EXPECT_THAT(TextsOf(gaps), ElementsAre("fuse -> softmax: two anchors"));
}

// ---- cycles -------------------------------------------------------------------------------------

TEST_F(FuseTest, NoRegionNeedsItself) {
  const Value x = X({2, 3}), a = f_(Softmax{}, {x});
  const Value detour = f_(Softmax{.axis = 0}, {exp(a)});
  target_.fuses = [](const Function& body) {
    for (const Node& n : body.nodes())
      if (n.op.Is<Softmax>() && n.op.As<Softmax>()->axis == 0) return Verdict::No("not this one");
    return Verdict::Yes("any");
  };
  f_.Return("y", a + detour);
  const Function& after = FusedFully();
  EXPECT_THAT(Ops(after), ElementsAre("fused", "softmax", "add"));
}

// q follows the anchor p in one region and reads the anchor a; s is made of p and lies before b. A
// region of a and b would read s, which waits for the region of p and q, which waits for a.
TEST_F(FuseTest, NoCycleThroughARegionThatBeganEarlier) {
  const Value x = X({2, 3}), row = f_.Argument("row", F32({1, 3}));
  const Value p = f_(Softmax{}, {x});
  const Value a = f_(Softmax{}, {row});
  const Value q = p + a;
  const Value s = f_(Reduce{}, {p});
  f_.Return("q", q);
  f_.Return("b", a + s);
  const Function& after = FusedFully();
  EXPECT_THAT(Ops(after), ElementsAre("softmax", "fused", "reduce", "add"));
}

// Any function, with a target of any mind, gives the same numbers.
TEST_F(FuseTest, RandomFunctionsKeepTheirMeaning) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
    Function& f = *m_.AddFunction("random");
    Values values{f.Argument("x", F32({2, 3})), f.Argument("row", F32({1, 3})),
                  f.Argument("one", F32({1, 1})), f(Fill{.value = 0.5}, {})};
    for (int i = 0; i < 16; ++i) {
      const size_t recent = std::min<size_t>(values.size(), 6);
      const Value v = values[values.size() - 1 - below(recent)], w = values[below(values.size())];
      switch (v.type().rank() == 0 ? 0 : below(7)) {
        case 0:
          values.push_back(v + w);
          break;
        case 1:
          values.push_back(f(Relu{}, {v}));
          break;
        case 2:
          values.push_back(max(v, w));
          break;
        case 3:
          values.push_back(f(Softmax{}, {v}));
          break;
        case 4:
          values.push_back(
              f(Reduce{.kind = ReduceKind::kMax, .axes = {static_cast<int64_t>(below(2))}}, {v}));
          break;
        case 5:
          values.push_back(f(Reshape{.shape = v.type().shape()}, {f(Transpose{{1, 0}}, {v})}));
          break;
        default:
          values.push_back(f(Slice{.begin = {0}, .end = {1}}, {v}));
      }
    }
    f.Return("last", values.back());
    f.Return("other", values[below(values.size())]);
    target_.fuses = [&](const Function& body) {  // the same answer to the same question
      return HashText(ToText(body), seed) % 4 != 0 ? Verdict::Yes("any") : Verdict::No("not this");
    };
    const Function& after = After(
        f, [&](const Function& in, Function& out) { return Fuse(m_, in, out, target_).status(); });
    ExpectSame(f, after);
    if (HasFailure()) FAIL() << ToText(f) << ToText(after);
  }
}

}  // namespace
}  // namespace forge::ir
