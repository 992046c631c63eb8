// SPDX-License-Identifier: Apache-2.0
// A whole model through all passes in the order of runtime/plan/lower.cc: after each of them it
// computes what it computed when it was imported.
#include "formats/onnx/importer.h"
#include "ir/ops/spatial/conv.h"
#include "ir/ops/spatial/pool.h"
#include "ir/type/encodings.h"
#include "tests/ir/passes/pass_test.h"

namespace forge::ir {
namespace {

using ::testing::Contains;

class FashionTest : public PassTest {
 protected:
  void SetUp() override {
    FORGE_ASSERT_OK_AND_ASSIGN(
        model_, ImportOnnx(std::string(FORGE_SOURCE_DIR) + "/examples/fashion/fashion.onnx"));
    Freeze(*model_);
    start_ = model_->functions()[0].get();
    at_ = start_;
    for (const SymbolRef& s : model_->symbols()) values_[s] = 2;
    arguments_ = RandomArguments(*start_, values_);
    FORGE_ASSERT_OK_AND_ASSIGN(want_, Run(*start_, arguments_));
    target_.supports = [](const Candidate& c) {
      const bool composite = c.op.def().decompose != nullptr && !c.op.Is<Pool>();
      return composite ? Verdict::No("one by one") : Verdict::Yes("any");
    };
    target_.encodings = [this](const Candidate& c) -> std::vector<EncodingChoice> {
      if (!c.op.Is<Conv>()) return {};
      return {{{last_, last_, nullptr}, {last_}, 0}};
    };
  }

  // Runs the pass on what the one before it made, and what that computes.
  void Apply(const std::function<absl::Status(const Function&, Function&)>& pass) {
    auto next = std::make_unique<Function>("main");
    ASSERT_THAT(pass(*at_, *next), Succeeds());
    made_.push_back(std::move(next));
    at_ = made_.back().get();
  }
  void ExpectSameNumbers() {
    FORGE_ASSERT_OK_AND_ASSIGN(const Interpretation got, Run(*at_, arguments_, computed_));
    ASSERT_EQ(got.results.size(), want_.results.size());
    for (size_t r = 0; r < got.results.size(); ++r) {
      const HostValue &g = got.results[r], &w = want_.results[r];
      ASSERT_EQ(g.type(), w.type());
      for (int64_t i = 0; i < g.elements(); ++i) ASSERT_NEAR(g.f64(i), w.f64(i), 1e-5) << i;
    }
  }
  // Moves what it can into a function that is run at once.
  void ApplyHoist() {
    auto load = std::make_unique<Function>("load");
    Apply(
        [&](const Function& in, Function& out) { return Hoist(*model_, in, *load, out).status(); });
    FORGE_ASSERT_OK_AND_ASSIGN(const Interpretation loaded, Run(*load, {}, computed_));
    for (size_t i = 0; i < loaded.results.size(); ++i)
      computed_[model_->FindVariable(load->results()[i].name)] = loaded.results[i];
  }

  std::unique_ptr<Module> model_;
  std::vector<std::unique_ptr<Function>> made_;
  const Function *start_ = nullptr, *at_ = nullptr;
  Bindings values_;
  std::vector<HostValue> arguments_;
  Interpretation want_;
  VariableValues computed_;
  EncodingRef last_ = *PermutedEncoding::Make({0, 2, 3, 1});
  FakeTarget target_;
};

TEST_F(FashionTest, EachPassKeepsTheNumbers) {
  Apply([&](const Function& in, Function& out) { return Fold(*model_, in, out); });
  ExpectSameNumbers();
  EXPECT_THAT(Ops(*at_), testing::Not(Contains("batch_norm")));
  Apply(Recognise);
  ExpectSameNumbers();
  Apply([&](const Function& in, Function& out) { return Legalise(in, out, target_); });
  ExpectSameNumbers();
  EXPECT_THAT(Ops(*at_), testing::Not(Contains("softmax")));
  ApplyHoist();
  ExpectSameNumbers();
  Apply(
      [&](const Function& in, Function& out) { return Fuse(*model_, in, out, target_).status(); });
  ExpectSameNumbers();
  EXPECT_THAT(Ops(*at_), Contains("fused"));
  Apply([&](const Function& in, Function& out) { return Bind(*model_, in, out, values_); });
  ExpectSameNumbers();
  Apply([&](const Function& in, Function& out) { return AssignEncodings(in, out, target_); });
  ExpectSameNumbers();
  ApplyHoist();
  ExpectSameNumbers();
}

}  // namespace
}  // namespace forge::ir
