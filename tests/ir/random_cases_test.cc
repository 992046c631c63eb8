// SPDX-License-Identifier: Apache-2.0
// What holds for every op at shapes that its cases do not list; FORGE_RANDOM_CASES=N draws N
// for each op.
#include "tests/support/random_cases.h"

#include <gtest/gtest.h>

#include "ir/cases/bounds.h"
#include "ir/graph/interpreter.h"
#include "ir/graph/module.h"
#include "ir/text/key.h"
#include "tests/support/status_matchers.h"

namespace forge::ir {
namespace {

class RandomCasesTest : public testing::Test {
 protected:
  // Calls check(case) for each random case of each op.
  template <class Check>
  void ForEach(Check check) {
    int cases = 0, ops = 0;
    for (const OpDef* def : AllOps()) {
      const std::vector<ConcreteCase> drawn = RandomCases(*def, RandomCaseCount(20));
      ops += drawn.empty() ? 0 : 1;
      for (const ConcreteCase& c : drawn) {
        SCOPED_TRACE(c.ToText());
        check(c);
        ++cases;
      }
    }
    EXPECT_GT(ops, 200);
    RecordProperty("cases", cases);
  }
};

TEST_F(RandomCasesTest, EvaluationHasTheTypesOfTheShapeRule) {
  ForEach([](const ConcreteCase& c) {
    FORGE_ASSERT_OK_AND_ASSIGN(const CaseInputs inputs, MakeInputs(c));
    FORGE_ASSERT_OK_AND_ASSIGN(const auto out, Evaluate(c.op, inputs.pointers()));
    FORGE_ASSERT_OK_AND_ASSIGN(const Types types, c.op.Infer(c.types()));
    ASSERT_EQ(out.size(), types.size());
    for (size_t i = 0; i < types.size(); ++i) EXPECT_EQ(out[i].type(), types[i]) << "result " << i;
  });
}

TEST_F(RandomCasesTest, TheTextFormParsesBack) {
  ForEach([](const ConcreteCase& c) {
    Module m;
    Function& f = *m.AddFunction("main");
    Values in;
    for (size_t i = 0; i < c.in.size(); ++i)
      in.push_back(c.in[i].type ? f.Argument(fmt::format("x{}", i), c.in[i].type) : Value{});
    const Values out = f.Add(c.op, in);
    for (size_t i = 0; i < out.size(); ++i) f.Return(fmt::format("y{}", i), out[i]);
    ASSERT_THAT(f.status(), Succeeds());
    FORGE_ASSERT_OK_AND_ASSIGN(const auto parsed, FromText(ToText(m)));
    EXPECT_EQ(ToText(*parsed), ToText(m));
    EXPECT_EQ(KeyOf(*parsed->Find("main")), KeyOf(f));
  });
}

TEST_F(RandomCasesTest, PartsHaveTheResultsOfTheWhole) {
  ForEach([](const ConcreteCase& c) {
    Function f("case");
    Values in;
    for (size_t i = 0; i < c.in.size(); ++i)
      in.push_back(c.in[i].type ? f.Argument(fmt::format("x{}", i), c.in[i].type) : Value{});
    const Values parts = c.op.Decompose(f, in);
    if (parts.empty()) return;
    for (size_t i = 0; i < parts.size(); ++i) f.Return(fmt::format("y{}", i), parts[i]);
    ASSERT_THAT(f.status(), Succeeds());
    FORGE_ASSERT_OK_AND_ASSIGN(const CaseInputs inputs, MakeInputs(c));
    std::vector<const HostValue*> given = inputs.pointers();
    std::erase(given, nullptr);
    FORGE_ASSERT_OK_AND_ASSIGN(const auto got, Interpreter{}.Run(f, given));
    FORGE_ASSERT_OK_AND_ASSIGN(const auto want, Evaluate(c.op, inputs.pointers()));
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_THAT(CompareResult(c.op, inputs.pointers(), want[i], got.results[i], i), Succeeds());
  });
}

}  // namespace
}  // namespace forge::ir
