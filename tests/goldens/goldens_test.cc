// SPDX-License-Identifier: Apache-2.0
// The ops' evaluators and gradients against PyTorch's results, which make_goldens.py writes.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "ir/cases/bounds.h"
#include "ir/cases/case_inputs.h"
#include "ir/graph/interpreter.h"
#include "ir/graph/module.h"
#include "tests/goldens/archive.h"
#include "tests/support/status_matchers.h"

namespace forge::ir {
namespace {

using nlohmann::json;

constexpr char kArchive[] = FORGE_SOURCE_DIR "/tests/goldens/goldens.npz";

// Every case there is, by its text.
std::map<std::string, ConcreteCase> AllCases() {
  std::map<std::string, ConcreteCase> all;
  for (const OpDef* def : AllOps()) {
    const auto cases = ConcreteCases(*def);
    EXPECT_TRUE(cases.ok()) << cases.status();
    for (const ConcreteCase& c : *cases) all.emplace(c.ToText(), c);
  }
  return all;
}

class GoldensTest : public testing::Test {
 protected:
  // Calls check(case, operands, entry) for each golden whose case there still is.
  template <class Check>
  void ForEach(Check check) {
    FORGE_ASSERT_OK_AND_ASSIGN(const Goldens goldens, ReadGoldens(kArchive));
    const std::map<std::string, ConcreteCase> cases = AllCases();
    std::map<std::string, int> matched;
    int stale = 0;
    for (const json& entry : goldens.index) {
      const std::string text = entry["case"];
      int& count = matched[entry["op"]];
      const auto at = cases.find(text);
      if (at == cases.end()) {
        ++stale;
        continue;
      }
      SCOPED_TRACE(text);
      check(goldens, at->second, entry);
      ++count;
    }
    for (const auto& [op, count] : matched)
      EXPECT_GT(count, 0) << op << " has other cases now: run tests/goldens/make_goldens.py";
    EXPECT_LT(stale, static_cast<int>(goldens.index.size()) / 10)
        << "of " << goldens.index.size() << " goldens: run tests/goldens/make_goldens.py";
    RecordProperty("stale", stale);
  }
};

TEST_F(GoldensTest, EvaluatorsAgreeWithPyTorch) {
  ForEach([](const Goldens& goldens, const ConcreteCase& c, const json& entry) {
    const Operands in(goldens, entry["operands"]);
    const json& places = entry["results"];
    FORGE_ASSERT_OK_AND_ASSIGN(const auto got, Evaluate(c.op, in.pointers));
    ASSERT_LE(places.size(), got.size());
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i].is_null()) continue;
      const HostValue golden = goldens.At(places[i]);
      ASSERT_EQ(got[i].type(), golden.type()) << "result " << i;
      const absl::Status s = CompareResult(c.op, in.pointers, golden, got[i], i);
      EXPECT_TRUE(s.ok()) << "result " << i << ": " << s;
    }
  });
}

TEST_F(GoldensTest, EveryOpHasAGoldenOrIsNotPyTorchs) {
  // Made by passes, or by importers, of other ops, as host steps are.
  const std::set<std::string_view> absent = {
      "relayout",   "fused", "if", "loop", "custom_gradient", "deferred", "optimization_barrier",
      "bind_symbol"};
  FORGE_ASSERT_OK_AND_ASSIGN(const Goldens goldens, ReadGoldens(kArchive));
  std::set<std::string> with;
  for (const json& entry : goldens.index) with.insert(entry["op"]);
  for (const OpDef* def : AllOps())
    EXPECT_NE(with.contains(std::string(def->info.name)),
              absent.contains(def->info.name) || def->info.host)
        << def->info.name << ": tests/goldens/make_goldens.py computes it with PyTorch";
}

// The function that computes the gradients of result 0 by the op's own rule.
std::unique_ptr<Function> GradientOf(const ConcreteCase& c, const Types& in, const Type& out) {
  auto f = std::make_unique<Function>("gradient");
  Values operands;
  for (size_t i = 0; i < in.size(); ++i)
    operands.push_back(in[i] ? f->Argument(fmt::format("x{}", i), in[i]) : Value{});
  const Value dy = f->Argument("dy", out);
  const Values y = f->Add(c.op, operands);
  Values all(y.size());
  all[0] = dy;
  const Values dx = c.op.Gradient(GradArgs{*f, operands, y, all});
  for (size_t i = 0; i < dx.size(); ++i)
    if (dx[i]) f->Return(fmt::format("{}", i), dx[i]);
  return f;
}

// Each gradient in turn, of operands of f64: PyTorch's beside Forge's, zeros where that has none.
void CheckGradients(const Goldens& goldens, const Function& f, const Operands& in,
                    const std::vector<HostValue>& results, const json& places) {
  size_t golden = 0;
  for (size_t i = 0; i < in.pointers.size(); ++i) {
    if (in.pointers[i] == nullptr || in.pointers[i]->dtype() != DType::kF64) continue;
    const HostValue want = goldens.At(places[golden++]);
    const HostValue* got = nullptr;
    for (size_t r = 0; r < results.size(); ++r)
      if (f.results()[r].name == std::to_string(i)) got = &results[r];
    for (int64_t e = 0; e < want.elements(); ++e)
      EXPECT_NEAR(got ? got->f64(e) : 0, want.f64(e), 1e-10 * std::max(1.0, std::fabs(want.f64(e))))
          << "operand " << i << ", element " << e;
  }
}

TEST_F(GoldensTest, GradientsAgreeWithPyTorch) {
  int checked = 0;
  ForEach([&](const Goldens& goldens, const ConcreteCase& c, const json& entry) {
    if (entry["gradients"].empty() || c.op.def().gradient == nullptr) return;
    const Operands in(goldens, entry["operands"]);
    const Types out = *c.op.Infer(c.types());
    const auto f = GradientOf(c, c.types(), out[0]);
    if (absl::IsUnimplemented(f->status())) return;  // as ops_test.cc lists
    ASSERT_TRUE(f->status().ok()) << f->status();
    HostValue dy = *HostValue::Zeros(DType::kF64, Constants(out[0].shape()));
    for (int64_t i = 0; i < dy.elements(); ++i)
      dy.Set(i, 0.5 + 0.5 * static_cast<double>(i % 7) / 7);
    std::vector<const HostValue*> arguments = in.pointers;
    std::erase(arguments, nullptr);
    arguments.push_back(&dy);
    FORGE_ASSERT_OK_AND_ASSIGN(const auto got, Interpreter{}.Run(*f, arguments));
    CheckGradients(goldens, *f, in, got.results, entry["gradients"]);
    ++checked;
  });
  EXPECT_GT(checked, 50);
}

}  // namespace
}  // namespace forge::ir
