// SPDX-License-Identifier: Apache-2.0
// Functions that a model defines, and sub-graphs within them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/ir_values.h"
#include "tests/support/onnx_model.h"
#include "tests/support/status_matchers.h"

namespace forge {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;

onnx::FunctionProto& AddFunction(OnnxModel& m, std::string_view name,
                                 const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& outputs) {
  onnx::FunctionProto& f = *m.proto().add_functions();
  f.set_domain("local");
  f.set_name(std::string(name));
  for (const std::string& in : inputs) f.add_input(in);
  for (const std::string& out : outputs) f.add_output(out);
  for (const char* domain : {"", "local"}) {
    onnx::OperatorSetIdProto& set = *f.add_opset_import();
    set.set_domain(domain);
    set.set_version(*domain == '\0' ? 17 : 1);
  }
  return f;
}

onnx::NodeProto& AddFunctionNode(onnx::FunctionProto& f, std::string_view op,
                                 const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& outputs) {
  onnx::NodeProto& node = *f.add_node();
  node.set_op_type(std::string(op));
  for (const std::string& in : inputs) node.add_input(in);
  for (const std::string& out : outputs) node.add_output(out);
  return node;
}

onnx::NodeProto& AddCall(OnnxModel& m, std::string_view name, std::vector<std::string> inputs,
                         std::vector<std::string> outputs) {
  onnx::NodeProto& node = m.Node(name, std::move(inputs), std::move(outputs));
  node.set_domain("local");
  return node;
}

OnnxModel CallingModel() {
  OnnxModel m;
  onnx::OperatorSetIdProto& set = *m.proto().add_opset_import();
  set.set_domain("local");
  set.set_version(1);
  m.Input("x", {"3"}).Output("y");
  return m;
}

std::vector<float> RunCalls(const OnnxModel& m) {
  const auto out = ImportAndRun(m, {FloatTensor({3}, {-1, 0, 2})});
  EXPECT_TRUE(out.ok()) << out.status();
  std::vector<float> numbers;
  for (int64_t i = 0; out.ok() && i < (*out)[0].elements(); ++i)
    numbers.push_back(static_cast<float>((*out)[0].f64(i)));
  return numbers;
}

// A function of a function, called twice: names of one call are not those of the other.
TEST(OnnxFunctionsTest, EachCallHasNamesOfItsOwn) {
  OnnxModel m = CallingModel();
  onnx::FunctionProto& square = AddFunction(m, "square", {"a"}, {"b"});
  AddFunctionNode(square, "Mul", {"a", "a"}, {"b"});
  onnx::FunctionProto& twice = AddFunction(m, "fourth", {"a"}, {"b"});
  AddFunctionNode(twice, "square", {"a"}, {"t"}).set_domain("local");
  AddFunctionNode(twice, "square", {"t"}, {"b"}).set_domain("local");
  AddCall(m, "fourth", {"x"}, {"t"});
  AddCall(m, "square", {"t"}, {"y"});
  EXPECT_THAT(RunCalls(m), ElementsAre(1, 0, 256));
}

TEST(OnnxFunctionsTest, ANodeRefersToAnAttributeOfTheCall) {
  OnnxModel m = CallingModel();
  onnx::FunctionProto& leaky = AddFunction(m, "leaky", {"a"}, {"b"});
  leaky.add_attribute("slope");
  onnx::AttributeProto& a = Attribute(AddFunctionNode(leaky, "LeakyRelu", {"a"}, {"b"}), "alpha",
                                      onnx::AttributeProto::FLOAT);
  a.set_ref_attr_name("slope");
  Set(AddCall(m, "leaky", {"x"}, {"y"}), "slope", 0.5F);
  EXPECT_THAT(RunCalls(m), ElementsAre(-0.5F, 0, 2));
  m.graph().mutable_node(0)->clear_attribute();  // the operator's own default then
  EXPECT_THAT(RunCalls(m), ElementsAre(-0.01F, 0, 2));
}

TEST(OnnxFunctionsTest, ABodyReadsTheNamesAroundIt) {
  OnnxModel m = CallingModel();
  onnx::FunctionProto& f = AddFunction(m, "choose", {"a", "c"}, {"b"});
  onnx::NodeProto& branch = AddFunctionNode(f, "If", {"c"}, {"b"});
  for (const char* name : {"then_branch", "else_branch"}) {
    onnx::GraphProto& body = *Attribute(branch, name, onnx::AttributeProto::GRAPH).mutable_g();
    body.set_name(name);
    onnx::NodeProto& node = *body.add_node();
    node.set_op_type(name[0] == 't' ? "Neg" : "Abs");
    node.add_input("a");
    node.add_output("r");
    body.add_output()->set_name("r");
  }
  m.Initializer("yes", onnx::TensorProto::BOOL, {}).add_int32_data(1);
  AddCall(m, "choose", {"x", "yes"}, {"y"});
  EXPECT_THAT(RunCalls(m), ElementsAre(1, 0, -2));
}

TEST(OnnxFunctionsTest, AResultMayBeAnOperand) {
  OnnxModel m = CallingModel();
  AddFunction(m, "same", {"a"}, {"a"});
  AddCall(m, "same", {"x"}, {"y"});
  EXPECT_THAT(RunCalls(m), ElementsAre(-1, 0, 2));
}

TEST(OnnxFunctionsTest, AFunctionThatCallsItselfIsRefused) {
  OnnxModel m = CallingModel();
  AddFunctionNode(AddFunction(m, "again", {"a"}, {"b"}), "again", {"a"}, {"b"}).set_domain("local");
  AddCall(m, "again", {"x"}, {"y"});
  EXPECT_THAT(m.Import().status(), Fails(StatusCode::kDataLoss, "'again' calls itself"));
}

// Each function calls the one before it, `times` times.
OnnxModel NestedCalls(int depth, int times) {
  OnnxModel m = CallingModel();
  AddFunctionNode(AddFunction(m, "f0", {"a"}, {"b"}), "Relu", {"a"}, {"b"});
  for (int i = 1; i <= depth; ++i) {
    onnx::FunctionProto& f = AddFunction(m, "f" + std::to_string(i), {"a"}, {"b"});
    std::string in = "a";
    for (int k = 0; k < times; ++k) {
      const std::string out = k + 1 == times ? "b" : "t" + std::to_string(k);
      AddFunctionNode(f, "f" + std::to_string(i - 1), {in}, {out}).set_domain("local");
      in = out;
    }
  }
  AddCall(m, "f" + std::to_string(depth), {"x"}, {"y"});
  return m;
}

TEST(OnnxFunctionsTest, CallsNestAsDeepAsTheLimit) {
  EXPECT_THAT(RunCalls(NestedCalls(150, 1)), ElementsAre(0, 0, 2));
  EXPECT_THAT(NestedCalls(2000, 1).Import().status(),
              Fails(StatusCode::kResourceExhausted, "200 deep"));
}

TEST(OnnxFunctionsTest, CallsThatGrowWithoutBoundAreRefused) {
  EXPECT_THAT(NestedCalls(40, 2).Import().status(),
              Fails(StatusCode::kResourceExhausted, "1000000 nodes"));
}

TEST(OnnxFunctionsTest, OperandsThatDoNotFitAreNamed) {
  OnnxModel m = CallingModel();
  AddFunctionNode(AddFunction(m, "f", {"a"}, {"b"}), "Relu", {"a"}, {"b"});
  AddCall(m, "f", {"x", "x"}, {"y"});
  EXPECT_THAT(m.Import().status(), Fails(StatusCode::kDataLoss, "2 inputs"));
}

TEST(OnnxFunctionsTest, AnOperatorWithinAFunctionThatIsUnknownIsListed) {
  OnnxModel m = CallingModel();
  AddFunctionNode(AddFunction(m, "f", {"a"}, {"b"}), "Nonsense", {"a"}, {"b"});
  AddCall(m, "f", {"x"}, {"y"});
  EXPECT_THAT(m.Import().status(), Fails(StatusCode::kDataLoss, "Nonsense"));
}

TEST(OnnxFunctionsTest, AFunctionDefinesItsResults) {
  OnnxModel m = CallingModel();
  AddFunctionNode(AddFunction(m, "f", {"a"}, {"b"}), "Relu", {"a"}, {"c"});
  AddCall(m, "f", {"x"}, {"z"});
  m.Node("Relu", {"z"}, {"y"});
  EXPECT_THAT(
      m.Import().status(),
      Fails(StatusCode::kDataLoss, "node 'f_0' (f): the function does not define its result 'b'"));
}

// A name that the function does not define is not looked for around the call.
TEST(OnnxFunctionsTest, AFunctionDoesNotSeeTheCaller) {
  OnnxModel m = CallingModel();
  AddFunctionNode(AddFunction(m, "f", {"a"}, {"b"}), "Add", {"a", "x"}, {"b"});
  AddCall(m, "f", {"x"}, {"y"});
  EXPECT_THAT(m.Import().status(), Fails(StatusCode::kDataLoss, "not defined"));
}

}  // namespace
}  // namespace forge
