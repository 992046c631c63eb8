// SPDX-License-Identifier: Apache-2.0
// Gradients of functions and the steps of optimisers. Every op's own gradient is tested with its
// cases; the numbers of optimisers are those of torch.optim in f64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "ir/graph/interpreter.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/fake_quantize.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/stop_gradient.h"
#include "ir/ops/product/attention_gradient.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/training/differentiate.h"
#include "ir/training/step.h"
#include "tests/support/ir_values.h"
#include "tests/support/status_matchers.h"

namespace forge::ir {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::Pointwise;

Value Sum(Value x) {
  return (*x.fn)(Reduce{.kind = ReduceKind::kSum, .axes = {}, .keep_dims = false}, {x});
}

class DifferentiateTest : public ::testing::Test {
 protected:
  // The gradient of the sum of y for x at 3, -2.
  std::vector<double> GradientOf(Value y) {
    auto gradients = Differentiate(f_, Sum(y), {{x_}});
    EXPECT_TRUE(gradients.ok()) << gradients.status();
    if (!gradients.ok()) return {};
    f_.Return("gradient", gradients->front());
    const HostValue at = Tensor({2}, {3, -2});
    const HostValue* arguments[] = {&at};
    const auto out = Interpreter{}.Run(f_, arguments);
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? Numbers(out->results.front()) : std::vector<double>();
  }

  Module module_;
  Function& f_ = *module_.AddFunction("main");
  const Value x_ = f_.Argument("x", F32({2}));
};

TEST_F(DifferentiateTest, AddsWhatFlowsAlongEachPath) {
  EXPECT_THAT(GradientOf(x_ * x_ + x_), ElementsAre(7, -3));
}

// The quotients are 1.5 and -1, their steps 2 and -1.
TEST_F(DifferentiateTest, GoesThroughRoundings) {
  const auto rounded = [&](int64_t high, StraightThrough kind) {
    Function& f = *module_.AddFunction("rounded");
    const Value x = f.Argument("x", F32({2})), scale = f(Fill{2, DType::kF32, {1}}, {});
    const FakeQuantize op{.low = -high, .high = high, .straight_through = kind};
    const auto gradients = Differentiate(f, Sum(f(op, {x, scale})), {{x}});
    EXPECT_TRUE(gradients.ok()) << gradients.status();
    f.Return("gradient", gradients->front());
    const HostValue at = Tensor({2}, {3, -2});
    const HostValue* arguments[] = {&at};
    return Numbers(Interpreter{}.Run(f, arguments)->results.front());
  };
  EXPECT_THAT(rounded(1, StraightThrough::kClipped), ElementsAre(0, 1));
  EXPECT_THAT(rounded(2, StraightThrough::kClipped), ElementsAre(1, 1));
  EXPECT_THAT(rounded(1, StraightThrough::kIdentity), ElementsAre(1, 1));
  EXPECT_THAT(rounded(1, StraightThrough::kTanh),
              Pointwise(DoubleNear(1e-6),
                        {1 - std::pow(std::tanh(1.5), 2), 1 - std::pow(std::tanh(1.0), 2)}));
  EXPECT_THAT(rounded(4, StraightThrough::kHardTanh),
              Pointwise(DoubleNear(1e-6), {1 - 1.5 / 4, 1 - 1.0 / 4}));
}

TEST_F(DifferentiateTest, IsZeroWhereNothingDepends) {
  EXPECT_THAT(GradientOf(f_.Read(module_.AddVariable({.name = "w", .type = F32({2})}))),
              ElementsAre(0, 0));
}

TEST_F(DifferentiateTest, GradientsHaveGradients) {
  const auto first = Differentiate(f_, Sum(x_ * x_ * x_), {{x_}});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT(GradientOf(first->front()), ElementsAre(18, -12));
}

TEST_F(DifferentiateTest, NothingFlowsThroughAStoppedValue) {
  EXPECT_THAT(GradientOf(x_ * f_(StopGradient{}, {x_})), ElementsAre(3, -2));
}

TEST_F(DifferentiateTest, RefusesWhatIsNoScalar) {
  EXPECT_THAT(Differentiate(f_, x_, {{x_}}), Fails(absl::StatusCode::kInvalidArgument,
                                                   "only a scalar float can be differentiated"));
}

TEST_F(DifferentiateTest, AddsWhatFlowsBackToSeveralValues) {
  const auto gradients = Differentiate(f_, {{x_ * x_, x_}}, {{x_, x_}}, {{x_}});
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  f_.Return("gradient", gradients->front());
  const HostValue at = Tensor({2}, {3, -2});
  const HostValue* arguments[] = {&at};
  EXPECT_THAT(Numbers(Interpreter{}.Run(f_, arguments)->results.front()), ElementsAre(21, 6));
}

TEST_F(DifferentiateTest, RefusesGradientsOfOtherTypes) {
  EXPECT_THAT(Differentiate(f_, {{x_}}, {{Sum(x_)}}, {{x_}}),
              Fails(absl::StatusCode::kInvalidArgument, "has no gradient of type f32[]"));
}

// Three matrices of x meet one w: no tensor has the three gradients of which that of w is the sum.
TEST(MatMulGradientTest, OfWeightsIsOneProduct) {
  Module module;
  Function& f = *module.AddFunction("main");
  const Value x = f.Argument("x", F32({3, 4, 5}));
  for (const bool transpose_b : {false, true}) {
    const Dims shape = transpose_b ? Dims{6, 5} : Dims{5, 6};
    const Value w = f.Argument(transpose_b ? "transposed" : "w", Type::Tensor(DType::kF32, shape));
    const Value y = f(MatMul{.transpose_b = transpose_b}, {x, w});
    const size_t before = f.nodes().size();
    const auto gradients = Differentiate(f, Sum(y * y), {{w}});
    ASSERT_TRUE(gradients.ok()) << gradients.status();
    EXPECT_EQ(gradients->front().type(), w.type());
    const Dims three{3, shape[0], shape[1]};
    for (size_t i = before; i < f.nodes().size(); ++i)
      EXPECT_NE(f.type(f.nodes()[i].first_out).shape(), three);
  }
}

class AttentionGradientTest : public ::testing::Test {
 protected:
  // The ops that give the gradients with respect to `with`.
  std::set<std::string_view> OpsOfGradients(ValueSpan with) {
    const Value y = f_(Attention{}, {q_, k_, k_, mask_});
    const size_t before = f_.nodes().size();
    const auto gradients = Differentiate(f_, Sum(y * y), with);
    EXPECT_TRUE(gradients.ok()) << gradients.status();
    std::set<std::string_view> names;
    for (size_t i = before; i < f_.nodes().size(); ++i) names.insert(f_.nodes()[i].op.name());
    return names;
  }

  Module module_;
  Function& f_ = *module_.AddFunction("main");
  const Value q_ = f_.Argument("q", F32({2, 5, 4})), k_ = f_.Argument("k", F32({7, 4})),
              mask_ = f_.Argument("mask", F32({5, 7}));
};

TEST_F(AttentionGradientTest, IsOneOpForQueriesKeysAndValues) {
  const auto names = OpsOfGradients({{q_, k_}});
  EXPECT_TRUE(names.contains("attention_gradient"));
  EXPECT_FALSE(names.contains("matmul"));
}

TEST_F(AttentionGradientTest, OfAMaskNeedsTheScores) {
  const auto names = OpsOfGradients({{q_, mask_}});
  EXPECT_FALSE(names.contains("attention_gradient"));
  EXPECT_TRUE(names.contains("matmul"));
}

// Runs `f` with what the variables are now, by name, and updates them. Returns whether it ran.
bool RunOnce(const Function& f, std::span<const HostValue* const> arguments,
             std::map<std::string, HostValue>& now) {
  const Interpreter how{.read = [&](const Variable& v) -> absl::StatusOr<HostValue> {
    const auto found = now.find(v.name);
    return found == now.end() ? InitialValue(v) : found->second;
  }};
  const auto out = how.Run(f, arguments);
  EXPECT_TRUE(out.ok()) << out.status();
  if (!out.ok()) return false;
  for (const auto& [v, value] : out->updates) now.insert_or_assign(v->name, value);
  return true;
}

// A parameter after steps by these gradients, with the rate 0.1.
std::vector<double> After(const OptimizerOptions& options, const HostValue& begin,
                          std::span<const HostValue> gradients) {
  Module m;
  Function& f = *m.AddFunction("train");
  Variable* const p = m.AddVariable({.name = "p", .type = begin.type()});
  p->init = Variable::Storage{begin.shared_bytes(), p->type, {}};
  const Value gradient = f.Argument("g", p->type), rate = f.Argument("rate", F32({}));
  EXPECT_TRUE(AppendStep(f, options, {rate}, {{p}}, {{gradient}}).ok());
  std::map<std::string, HostValue> now;
  const HostValue tenth = Tensor({}, {0.1});
  for (const HostValue& g : gradients) {
    const HostValue* arguments[] = {&g, &tenth};
    if (!RunOnce(f, arguments, now)) return {};
  }
  return Numbers(now.at("p"));
}

struct Steps {
  const char* optimizer;
  double momentum, weight_decay;
  bool nesterov;
  std::vector<double> parameter;
};

TEST(OptimizerTest, StepsAsTorchDoes) {
  const Steps all[] = {
      {"sgd", 0.9, 0.1, true, {0.844316, -2.021132, 0.410283}},
      {"adam", 0, 0.1, false, {0.837443597, -1.92501788, 0.32374292}},
      {"adamw", 0, 0.1, false, {0.834153186, -1.89781035, 0.324044182}},
      {"adagrad", 0, 0.1, false, {0.905823434, -1.98334644, 0.386783628}},
      {"rmsprop", 0.5, 0, false, {-0.256314658, -1.39532307, -0.9999994}},
      {"lion", 0, 0.1, false, {0.9811, -1.9612, 0.29105}},
  };
  for (const Steps& s : all) {
    SCOPED_TRACE(s.optimizer);
    const auto kind = ParseOptimizer(s.optimizer);
    ASSERT_TRUE(kind.ok()) << kind.status();
    OptimizerOptions options = DefaultsOf(*kind);
    options.momentum = s.momentum;
    options.weight_decay = s.weight_decay;
    options.nesterov = s.nesterov;
    const HostValue gradients[] = {Tensor({3}, {0.5, -1, 0.25}), Tensor({3}, {-0.125, 2, 0})};
    EXPECT_THAT(After(options, Tensor({3}, {1, -2, 0.5}), gradients),
                Pointwise(DoubleNear(1e-6), s.parameter));
  }
}

// What torch.optim.Muon gives in f64 with adjust_lr_fn = "match_rms_adamw".
TEST(OptimizerTest, OrthogonalisesMatrices) {
  const auto after = [](const std::vector<int64_t>& shape,
                        const std::function<bool(const Variable&)>& by_adamw) {
    OptimizerOptions options = DefaultsOf(OptimizerKind::kMuon);
    options.weight_decay = 0.1;
    options.by_adamw = by_adamw;
    const HostValue gradients[] = {Tensor(shape, {0.5, -1, 0.25, 1, 0.5, -0.75}),
                                   Tensor(shape, {-0.125, 2, 0, 0.5, -1, 0.25})};
    return After(options, Tensor(shape, {1, -2, 0.5, 0.25, 1, -1}), gradients);
  };
  const std::vector<double> wide = {0.949712092, -1.956903030, 0.482044130,
                                    0.183641860, 0.971768275,  -0.958312277};
  EXPECT_THAT(after({2, 3}, nullptr), Pointwise(DoubleNear(1e-5), wide));
  EXPECT_THAT(after({2, 3, 1, 1}, nullptr), Pointwise(DoubleNear(1e-5), wide));
  EXPECT_THAT(after({3, 2}, nullptr),
              Pointwise(DoubleNear(1e-5), std::vector{0.965324233, -1.968693884, 0.463003308,
                                                      0.210116271, 0.997015891, -0.973823564}));
  // By AdamW the first step is as long for each element.
  const std::vector<double> by_adamw = after({2, 3}, [](const Variable&) { return true; });
  EXPECT_THAT(by_adamw, Pointwise(DoubleNear(1e-5), after({6}, nullptr)));
  EXPECT_THAT(by_adamw, Not(Pointwise(DoubleNear(1e-2), wide)));
}

TEST(OptimizerTest, NamesThoseThereAre) {
  EXPECT_THAT(ParseOptimizer("lbfgs"),
              Fails(absl::StatusCode::kInvalidArgument, "is not sgd, adam, adamw"));
}

// Scores of 2 classes of one sample by a 2 x 2 matrix, which is trained in f16.
class LossScaleTest : public ::testing::Test {
 protected:
  LossScaleTest() {
    Function& f = *module_.AddFunction("main");
    const HostValue begin = Tensor({2, 2}, {1, 0, 0, 1});
    const Value x = f.Argument("x", F32({1, 2}));
    Variable* const w =
        module_.AddVariable({.name = "w",
                             .role = Variable::Role::kParameter,
                             .type = F32({2, 2}),
                             .init = Variable::Storage{begin.shared_bytes(), F32({2, 2}), {}}});
    f.Return("scores", f(MatMul{}, {x, f.Read(w)}));
    const auto made =
        AddTraining(module_, {.optimizer = {.momentum = 0.5}, .precision = {DType::kF16}});
    EXPECT_TRUE(made.ok()) << made.status();
  }
  void Step(const std::vector<double>& x) {
    const HostValue batch = Tensor({1, 2}, x), rate = Tensor({}, {0.5});
    const HostValue label = *HostValue::Zeros(DType::kI64, std::vector<int64_t>{1});
    const HostValue* arguments[] = {&batch, &label, &rate};
    ASSERT_TRUE(RunOnce(*module_.Find("train"), arguments, now_));
  }
  std::vector<double> At(const std::string& name) { return Numbers(now_.at(name)); }

  Module module_;
  std::map<std::string, HostValue> now_;
};

TEST_F(LossScaleTest, AStepTakesGradientsAsTheyAreWithoutIt) {
  Step({0.5, 1});
  // The softmax of 0.5, 1 is 0.3775, 0.6225; the gradient is x times (0.3775 - 1, 0.6225).
  EXPECT_THAT(At("w"), Pointwise(DoubleNear(1e-3), {1.1556, -0.1556, 0.3112, 0.6888}));
  EXPECT_THAT(At("loss_scale"), ElementsAre(65536));
  EXPECT_THAT(At("loss_scale.steps"), ElementsAre(1));
}

TEST_F(LossScaleTest, AnOverflowLeavesAllAsItIs) {
  Step({0.5, 1});
  const std::vector<double> w = At("w"), momentum = At("w.momentum");
  Step({-4, 1});  // the gradient of the scaled loss is about 65536 * 4
  EXPECT_EQ(At("w"), w);
  EXPECT_EQ(At("w.momentum"), momentum);
  EXPECT_THAT(At("loss_scale"), ElementsAre(32768));
  EXPECT_THAT(At("loss_scale.steps"), ElementsAre(0));
}

TEST_F(LossScaleTest, GrowsAfter2000Steps) {
  now_["loss_scale.steps"] = Tensor({}, {1999});
  now_["loss_scale"] = Tensor({}, {1024});
  Step({0.5, 1});
  EXPECT_THAT(At("loss_scale"), ElementsAre(2048));
  EXPECT_THAT(At("loss_scale.steps"), ElementsAre(0));
}

}  // namespace
}  // namespace forge::ir
