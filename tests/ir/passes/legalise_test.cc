// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/compiler/fused.h"
#include "ir/ops/creation/shape_of.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/norm/batch_norm.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/ops/reduction/softmax.h"
#include "ir/ops/spatial/conv.h"
#include "ir/ops/spatial/pool.h"
#include "tests/ir/passes/pass_test.h"

namespace forge::ir {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LegaliseTest : public PassTest {
 protected:
  // Everything but these.
  void Refuse(std::vector<std::string> ops) {
    target_.supports = [ops = std::move(ops)](const Candidate& c) {
      for (const std::string& op : ops)
        if (c.op.name() == op) return Verdict::No("no kernel for " + op);
      return Verdict::Yes("any");
    };
  }
  absl::Status Legal(const Function& in, Function& out) { return Legalise(in, out, target_); }
  const Function& Legalised() {
    return After(f_, [&](const Function& in, Function& out) { return Legal(in, out); });
  }
  // What the pass says when it refuses.
  std::string Refusal() {
    Function out("main");
    const absl::Status s = Legal(f_, out);
    EXPECT_EQ(s.code(), absl::StatusCode::kUnimplemented) << s;
    return std::string(Message(s));
  }

  FakeTarget target_;
};

TEST_F(LegaliseTest, LeavesAloneWhatTheTargetSupports) {
  const Value x = f_.Argument("x", F32({2, 3}));
  f_.Return("y", f_(Softmax{}, {x}));
  EXPECT_THAT(Ops(Legalised()), ElementsAre("softmax"));
}

TEST_F(LegaliseTest, TakesWhatTheTargetLacksApart) {
  const Value x = f_.Argument("x", F32({2, 3}));
  f_.Return("y", f_(Softmax{}, {x}) * 2.0);
  Refuse({"softmax"});
  const Function& after = Legalised();
  EXPECT_THAT(Ops(after), testing::Not(Contains("softmax")));
  EXPECT_THAT(Ops(after), Contains("reduce"));
  ExpectSame(f_, after, {.tolerance = 1e-6});
}

TEST_F(LegaliseTest, TakesBatchNormsApart) {
  const Value x = f_.Argument("x", F32({2, 3, 2, 2}));
  const Value variance =
      f_.Read(Add("variance", *HostValue::Zeros(DType::kF32, std::array{int64_t{3}})));
  f_.Return("y", f_.Add(BatchNorm{.epsilon = 0.5},
                        std::array{x, Constant(f_, "gamma", {3}), Constant(f_, "beta", {3}),
                                   Constant(f_, "mean", {3}), variance})[0]);
  Refuse({"batch_norm"});
  const Function& after = Legalised();
  EXPECT_THAT(Ops(after), testing::Not(Contains("batch_norm")));
  ExpectSame(f_, after, {.tolerance = 1e-6});
}

TEST_F(LegaliseTest, TakesDecompositionsApartInTurn) {
  Function& body = *m_.AddFunction("body");
  body.Return("r", body(Softmax{}, {body.Argument("a", F32({2, 3}))}));
  const Value x = f_.Argument("x", F32({2, 3}));
  f_.Return("y", f_(Fused{&body}, {x}));
  Refuse({"fused", "softmax"});
  const Function& after = Legalised();
  EXPECT_THAT(Ops(after), testing::Not(Contains("fused")));
  EXPECT_THAT(Ops(after), testing::Not(Contains("softmax")));
  ExpectSame(f_, after, {.tolerance = 1e-6});
}

TEST_F(LegaliseTest, HalvesWhatHasTooManyOperands) {
  Values parts;
  for (int i = 0; i < 7; ++i) parts.push_back(f_.Argument(fmt::format("x{}", i), F32({2, i + 1})));
  f_.Return("y", f_.Add(Concat{.axis = -1}, parts)[0]);
  target_.supports = [](const Candidate& c) {
    return c.in.size() > 3 ? Verdict::No("too many operands") : Verdict::Yes("any");
  };
  const Function& after = Legalised();
  EXPECT_THAT(Ops(after), Each("concat"));
  ExpectSame(f_, after, {.tolerance = 0});
  // Two have no simpler form.
  target_.supports = [](const Candidate& c) {
    return c.in.size() > 1 ? Verdict::No("too many operands") : Verdict::Yes("any");
  };
  EXPECT_THAT(Refusal(),
              HasSubstr("concat(f32[2, 2], f32[2, 3]) from legalise: too many operands"));
}

TEST_F(LegaliseTest, JudgesEachNodeByItsTypes) {
  const Value x = f_.Argument("x", F32({2, 3})), wide = f_.Argument("wide", F32({2, 8}));
  f_.Return("y", f_(Softmax{}, {x}));
  f_.Return("z", f_(Softmax{}, {wide}));
  target_.supports = [](const Candidate& c) {
    EXPECT_EQ(c.out.size(), 1u);
    const bool no = c.op.Is<Softmax>() && c.in[0].shape()[1] == Dim(8);
    return no ? Verdict::No("rows of 8") : Verdict::Yes("any");
  };
  const Function& after = Legalised();
  const Node* kept = Only<Softmax>(after);
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(after.type(kept->in[0]), F32({2, 3}));
  ExpectSame(f_, after, {.tolerance = 1e-6});
}

TEST_F(LegaliseTest, ListsAlikePartsOfAnOperatorOnce) {
  const Value x = f_.Argument("x", F32({1, 2, 8, 8}));
  for (const char* node : {"Pool_0", "Pool_1"}) {
    const Function::Scope scope(f_, From(node));
    f_.Return(node, f_(Pool{.kind = PoolKind::kMax, .kernel = {3, 3}}, {x}));
  }
  Refuse({"pool"});  // which is a pool along one axis after the other
  const std::string refusal = Refusal();
  EXPECT_THAT(refusal, HasSubstr("fake cannot run 2 of the model's operators:"));
  EXPECT_EQ(std::count(refusal.begin(), refusal.end(), '\n'), 2) << refusal;
}

TEST_F(LegaliseTest, ListsEveryNodeThatHasNeither) {
  const Value x = f_.Argument("x", F32({2, 3})), w = f_.Argument("w", F32({3, 3}));
  Value y, z;
  {
    const Function::Scope scope(f_, From("Gemm_0"));
    y = f_(MatMul{}, {x, w});
  }
  {
    const Function::Scope scope(f_, From("Relu_1"));
    z = f_(Relu{}, {y});
  }
  f_.Return("y", f_(MatMul{}, {z, w}));
  Refuse({"matmul", "relu"});
  const std::string refusal = Refusal();
  EXPECT_THAT(refusal, HasSubstr("fake cannot run 3 of the model's operators:"));
  EXPECT_THAT(refusal,
              HasSubstr("\n  matmul(f32[2, 3], f32[3, 3]) from Gemm_0 (Op): no kernel for matmul"));
  EXPECT_THAT(refusal, HasSubstr("\n  relu(f32[2, 3]) from Relu_1 (Op): no kernel for relu"));
  EXPECT_THAT(refusal, HasSubstr("\n  matmul(f32[2, 3], f32[3, 3]): no kernel for matmul"));
}

TEST_F(LegaliseTest, ListsWhatDecompositionsLackTogetherWithTheRest) {
  const Value x = f_.Argument("x", F32({2, 3})), w = f_.Argument("w", F32({3, 3}));
  f_.Return("y", f_(MatMul{}, {f_(Softmax{}, {x}), w}));
  Refuse({"matmul", "softmax", "exp"});
  const std::string refusal = Refusal();
  EXPECT_THAT(refusal, HasSubstr("cannot run 2 of"));
  EXPECT_THAT(refusal, HasSubstr("no kernel for matmul"));
  EXPECT_THAT(refusal, HasSubstr("no kernel for exp"));
}

TEST_F(LegaliseTest, NamesAbsentOperands) {
  const Value x = f_.Argument("x", F32({1, 1, 4, 4})), w = f_.Argument("w", F32({1, 1, 3, 3}));
  f_.Return("y", f_(Conv{}, {x, w}));
  Refuse({"conv"});
  EXPECT_THAT(Refusal(), HasSubstr("conv(f32[1, 1, 4, 4], f32[1, 1, 3, 3], -)"));
}

TEST_F(LegaliseTest, TakesNothingApartWhoseAxesAreNotKnown) {
  const Value x = f_.Argument("x", F32({6}));
  const Value shape = f_.Argument("shape", Type::Tensor(DType::kI64, {2}));
  const Function::RuntimeField runtime[] = {{"shape", shape}};
  const Value unranked = f_.AddRuntimeValued(Reshape{}, {&x, 1}, runtime)[0];
  f_.Return("y", f_(Softmax{}, {unranked}));
  target_.supports = [](const Candidate& c) {
    return c.out[0].is_tensor() ? Verdict::Yes("any") : Verdict::No("it is unranked");
  };
  const std::string refusal = Refusal();
  EXPECT_THAT(refusal, HasSubstr("cannot run 2 of"));
  EXPECT_THAT(refusal, HasSubstr("reshape(f32[6], i64[2]): it is unranked"));
  EXPECT_THAT(refusal, HasSubstr("softmax(f32[*]): it is unranked"));
}

}  // namespace
}  // namespace forge::ir
