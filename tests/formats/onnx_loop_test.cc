// SPDX-License-Identifier: Apache-2.0
// What the import of a loop knows of the types of its results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/onnx_model.h"
#include "tests/support/status_matchers.h"

namespace forge {
namespace {

using ::testing::ElementsAre;

class OnnxLoopTest : public ::testing::Test {
 protected:
  static OnnxModel Step() {
    OnnxModel body;
    body.Input("step", {}, onnx::TensorProto::INT64).Input("go", {}, onnx::TensorProto::BOOL);
    body.Output("go");
    return body;
  }
  static void SetBody(onnx::NodeProto& node, OnnxModel& body) {
    *Attribute(node, "body", onnx::AttributeProto::GRAPH).mutable_g() = body.graph();
  }
  static void AddConcat(OnnxModel& m, const std::vector<std::string>& in, const char* out) {
    Set(m.Node("Concat", in, {out}), "axis", int64_t{0});
  }

  // The types of the results of the model.
  static std::vector<std::string> TypesOf(const OnnxModel& m) {
    const auto module = m.Import();
    EXPECT_TRUE(module.ok()) << module.status();
    std::vector<std::string> types;
    if (!module.ok()) return types;
    const ir::Function& f = *(*module)->Find("main");
    for (const auto& result : f.results())
      types.push_back(f.type(result.value).is_tensor() ? f.type(result.value).ToText() : "unknown");
    return types;
  }
};

TEST_F(OnnxLoopTest, ValuesKeepTheTypesThatAllStepsShare) {
  OnnxModel m, body = Step();
  body.Input("a", {}).Input("b", {}).Output("a2").Output("b2").Output("row");
  body.Node("Exp", {"a"}, {"a2"});
  AddConcat(body, {"b", "a"}, "b2");
  body.Node("Neg", {"a2"}, {"row"});
  m.Input("x", {"n", "3"}).Output("a").Output("b").Output("rows").Ints("steps", {}, {5});
  SetBody(m.Node("Loop", {"steps", "", "x", "x"}, {"a", "b", "rows"}), body);
  EXPECT_THAT(TypesOf(m), ElementsAre("f32[n, 3]", "unknown", "f32[5, n, 3]"));
}

TEST_F(OnnxLoopTest, RowsHaveNoTypeWhereAConditionMayEndTheSteps) {
  OnnxModel m, body;
  body.Input("step", {}, onnx::TensorProto::INT64).Input("go", {}, onnx::TensorProto::BOOL);
  body.Input("a", {}).Output("more").Output("a2").Output("row");
  body.Ints("last", {}, {3}).Node("Less", {"step", "last"}, {"more"});
  body.Node("Exp", {"a"}, {"a2"});
  body.Node("Neg", {"a"}, {"row"});
  m.Input("x", {"n"}).Output("a").Output("rows").Ints("steps", {}, {5});
  SetBody(m.Node("Loop", {"steps", "", "x"}, {"a", "rows"}), body);
  EXPECT_THAT(TypesOf(m), ElementsAre("f32[n]", "unknown"));
}

// Rows are as long as what is computed in their step.
TEST_F(OnnxLoopTest, RowsHaveNoTypeThatOnlyTheBodyKnows) {
  OnnxModel m, body = Step();
  body.Input("a", {}).Output("a").Output("row");
  body.Node("NonZero", {"a"}, {"row"});
  m.Input("x", {"n"}).Output("a").Output("rows").Ints("steps", {}, {5});
  SetBody(m.Node("Loop", {"steps", "", "x"}, {"a", "rows"}), body);
  EXPECT_THAT(TypesOf(m), ElementsAre("f32[n]", "unknown"));
}

// Each of the values grows because the one before it did.
TEST_F(OnnxLoopTest, AChainOfGrowingValuesHasNoTypes) {
  OnnxModel m, body = Step();
  constexpr int kValues = 8;
  m.Input("x", {"3"}).Ints("steps", {}, {2});
  std::vector<std::string> in = {"steps", ""}, out;
  for (int i = 0; i < kValues; ++i) {
    const std::string name = fmt::format("v{}", i);
    body.Input(name, {}).Output(name + ".next");
    if (i == 0)
      AddConcat(body, {name, name}, "v0.next");
    else
      body.Node("Identity", {fmt::format("v{}", i - 1)}, {name + ".next"});
    m.Output(name);
    in.emplace_back("x");
    out.push_back(name);
  }
  SetBody(m.Node("Loop", in, out), body);
  EXPECT_THAT(TypesOf(m), ::testing::Each("unknown"));
}

TEST_F(OnnxLoopTest, LoopsWithinLoopsKeepTypes) {
  OnnxModel m, outer = Step(), inner = Step();
  inner.Input("b", {}).Output("b2").Node("Exp", {"b"}, {"b2"});
  outer.Input("a", {}).Output("a2").Ints("inner_steps", {}, {2});
  SetBody(outer.Node("Loop", {"inner_steps", "", "a"}, {"a2"}), inner);
  m.Input("x", {"n"}).Output("y").Ints("steps", {}, {3});
  SetBody(m.Node("Loop", {"steps", "", "x"}, {"y"}), outer);
  EXPECT_THAT(TypesOf(m), ElementsAre("f32[n]"));
}

// The weights of a body are the same variable after the imports that only find types.
TEST_F(OnnxLoopTest, WeightsOfABodyAreThereOnce) {
  OnnxModel m, body = Step();
  body.Input("a", {}).Output("a2").Floats("w", {2}, {1, 2}).Node("Mul", {"a", "w"}, {"a2"});
  m.Input("x", {"2"}).Output("y").Ints("steps", {}, {3});
  SetBody(m.Node("Loop", {"steps", "", "x"}, {"y"}), body);
  FORGE_ASSERT_OK_AND_ASSIGN(const auto module, m.Import());
  EXPECT_EQ(std::ranges::count_if(module->variables(),
                                  [](const auto& v) { return v->name.starts_with('w'); }),
            1);
  EXPECT_EQ(module->functions().size(), 2);
}

}  // namespace
}  // namespace forge
