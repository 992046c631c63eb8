// SPDX-License-Identifier: Apache-2.0
// Training steps that keep a part of their results: the same numbers in less memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/product/matmul.h"
#include "runtime/training_session.h"
#include "tests/support/ir_values.h"
#include "tests/support/oracle.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_names.h"

namespace forge {
namespace {

using ir::Function;
using ir::Module;
using ir::Value;
using ::testing::DoubleNear;
using ::testing::Pointwise;

constexpr int kBlocks = 12;
constexpr int64_t kUnits = 32, kSamples = 256;

// Blocks x = x + tanh(x w) tanh(x w), whose products and curves gradients need.
std::unique_ptr<Module> DeepNetwork() {
  auto m = std::make_unique<Module>();
  Function& f = *m->AddFunction("main");
  const ir::Dim batch(m->SymbolNamed("N"));
  Value x = f.Argument("x", F32({batch, kUnits}));
  for (int i = 0; i < kBlocks; ++i) {
    std::vector<double> w;
    for (int64_t k = 0; k < kUnits * kUnits; ++k)
      w.push_back(0.3 * std::sin(static_cast<double>(k * (i + 1))));
    const ir::HostValue init = Tensor({kUnits, kUnits}, w);
    ir::Variable* const v =
        m->AddVariable({.name = fmt::format("w{}", i),
                        .role = ir::Variable::Role::kParameter,
                        .type = init.type(),
                        .init = ir::Variable::Storage{init.shared_bytes(), init.type(), {}}});
    const Value y = tanh(f(ir::MatMul{}, {x, f.Read(v)}));
    x = x + y * y;
  }
  f.Return("y", x);
  return m;
}

std::vector<NamedTensor> Batch() {
  std::vector<double> x, label;
  for (int64_t k = 0; k < kSamples * kUnits; ++k) {
    x.push_back(std::cos(static_cast<double>(k)));
    label.push_back(std::cos(static_cast<double>(k) / 3));
  }
  return {{"x", Tensor({kSamples, kUnits}, x)}, {"label", Tensor({kSamples, kUnits}, label)}};
}

ir::TrainingOptions WithBudget(uint64_t bytes) {
  return {
      .loss = "mse", .gradient_norm = true, .activation_budget = bytes, .sizes = {{"N", kSamples}}};
}

class RematerialiseTest : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<TrainingSession> Open(const ir::TrainingOptions& options) {
    auto s = TrainingSession::Create(DeepNetwork(), OpenOnce(GetParam()), options);
    EXPECT_TRUE(s.ok()) << s.status();
    return s.ok() ? *std::move(s) : nullptr;
  }
};

TEST_P(RematerialiseTest, TrainsAsWithoutABudgetInLessMemory) {
  struct Trained {
    std::vector<double> losses;
    uint64_t arena_bytes = 0;
    std::vector<NamedTensor> parameters;
  };
  const auto train = [](TrainingSession& s) {
    Trained out;
    for (int i = 0; i < 3; ++i) {
      const auto grades = s.Step(Batch(), 0.01);
      EXPECT_TRUE(grades.ok()) << grades.status();
      out.losses.push_back(grades.ok() ? grades->loss : kNan);
    }
    out.arena_bytes = s.session().statistics().arena_bytes;
    out.parameters = *s.Parameters();
    return out;
  };
  const auto whole = Open(WithBudget(0));
  ASSERT_NE(whole, nullptr);
  const Trained want = train(*whole);
  uint64_t most = want.arena_bytes;
  double flops_again = 0;
  for (const uint64_t results : {18, 12}) {
    const uint64_t budget = results * kSamples * kUnits * sizeof(float);
    const auto part = Open(WithBudget(budget));
    ASSERT_NE(part, nullptr);
    const Trained got = train(*part);
    EXPECT_THAT(got.losses, Pointwise(DoubleNear(1e-5), want.losses));
    ASSERT_EQ(got.parameters.size(), want.parameters.size());
    for (size_t i = 0; i < got.parameters.size(); ++i)
      EXPECT_THAT(Numbers(got.parameters[i].value),
                  Pointwise(DoubleNear(1e-5), Numbers(want.parameters[i].value)));
    EXPECT_LT(got.arena_bytes, most) << results;
    most = got.arena_bytes;
    EXPECT_LE(part->activations().most_bytes, budget);
    EXPECT_GT(part->activations().flops_again, flops_again);
    flops_again = part->activations().flops_again;
  }
}

TEST_P(RematerialiseTest, KeepsAllWhereTheBudgetIsEnough) {
  const auto s = Open(WithBudget(1 << 30));
  ASSERT_NE(s, nullptr);
  EXPECT_EQ(s->activations().flops_again, 0);
  EXPECT_EQ(s->activations().most_bytes, s->activations().saved_bytes);
}

TEST_P(RematerialiseTest, NoBudgetIsTooSmallToTrain) {
  const auto whole = Open(WithBudget(0)), least = Open(WithBudget(1));
  ASSERT_TRUE(whole && least);
  FORGE_ASSERT_OK_AND_ASSIGN(const auto want, whole->Step(Batch(), 0.1));
  FORGE_ASSERT_OK_AND_ASSIGN(const auto got, least->Step(Batch(), 0.1));
  EXPECT_NEAR(got.loss, want.loss, 1e-6);
  EXPECT_NEAR(got.gradient_norm, want.gradient_norm, 1e-5);
}

TEST_P(RematerialiseTest, ABudgetNeedsTheSizes) {
  ir::TrainingOptions options = WithBudget(1000);
  options.sizes = {};
  EXPECT_THAT(TrainingSession::Create(DeepNetwork(), OpenOnce(GetParam()), options),
              Fails(absl::StatusCode::kInvalidArgument, "N"));
  options.sizes = {{"M", 1}};
  EXPECT_THAT(TrainingSession::Create(DeepNetwork(), OpenOnce(GetParam()), options),
              Fails(absl::StatusCode::kInvalidArgument, "'M'"));
}

INSTANTIATE_TEST_SUITE_P(AllDevices, RematerialiseTest, ::testing::ValuesIn(Devices()),
                         NameOfParameter);

}  // namespace
}  // namespace forge
