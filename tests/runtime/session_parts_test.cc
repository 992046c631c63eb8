// SPDX-License-Identifier: Apache-2.0
// Sessions of functions whose types depend on values of a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/model_bin/model_bin.h"
#include "formats/onnx/new_node.h"
#include "ir/ops/control/bind_symbol.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/indexing/nonzero.h"
#include "ir/ops/reduction/reduce.h"
#include "runtime/backends.h"
#include "runtime/report.h"
#include "runtime/session.h"
#include "tests/support/onnx_model.h"
#include "tests/support/oracle.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_names.h"

namespace forge {
namespace {

using formats::NewNode;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<std::unique_ptr<Session>> Open(const OnnxModel& m, const std::string& device,
                                              SessionOptions options = {}) {
  FORGE_ASSIGN_OR_RETURN(auto module, m.Import());
  FORGE_ASSIGN_OR_RETURN(DeviceRef opened, OpenDevice(device, {}));
  return Session::Create(std::make_shared<const Model>(std::move(module)), opened,
                         std::move(options));
}

std::vector<double> Numbers(const ir::HostValue& v) {
  std::vector<double> out;
  for (int64_t i = 0; i < v.elements(); ++i) out.push_back(v.f64(i));
  return out;
}

ir::HostValue Bool(bool value) {
  ir::HostValue v = *ir::HostValue::Zeros(DType::kBool, std::vector<int64_t>{});
  v.SetI64(0, value);
  return v;
}

std::vector<int64_t> ShapeOf(const ir::HostValue& v) {
  return {v.shape().begin(), v.shape().end()};
}

class SessionPartsTest : public ::testing::TestWithParam<std::string> {};

// y = reshape(x, shape) * 2, and shape is an input.
OnnxModel ReshapeByInput() {
  OnnxModel m;
  m.Input("x", {"n"}).Input("shape", {"2"}, onnx::TensorProto::INT64).Output("y");
  m.Floats("two", {}, {2});
  m.Node("Reshape", {"x", "shape"}, {"r"});
  m.Node("Mul", {"r", "two"}, {"y"});
  return m;
}

TEST_P(SessionPartsTest, AnInputGivesAShape) {
  FORGE_ASSERT_OK_AND_ASSIGN(auto session, Open(ReshapeByInput(), GetParam()));
  ASSERT_TRUE(session->runs_in_parts());
  for (const auto& shape : {std::vector<int64_t>{2, 3}, {3, 2}, {6, 1}, {2, 3}}) {
    const NamedTensor in[] = {{"x", Iota({6})}, {"shape", IntTensor({2}, shape)}};
    FORGE_ASSERT_OK_AND_ASSIGN(auto out, session->Run(in));
    EXPECT_EQ(ShapeOf(out[0].value), shape);
    EXPECT_EQ(out[0].value.f64(5), 10);
  }
}

TEST_P(SessionPartsTest, AWrongShapeNamesTheNode) {
  FORGE_ASSERT_OK_AND_ASSIGN(auto session, Open(ReshapeByInput(), GetParam()));
  for (const auto& shape : {std::vector<int64_t>{4, 2}, {-5, 2}, {INT64_MAX, INT64_MAX}}) {
    const NamedTensor in[] = {{"x", Iota({6})}, {"shape", IntTensor({2}, shape)}};
    const auto out = session->Run(in);
    ASSERT_FALSE(out.ok());
    EXPECT_THAT(Message(out.status()), HasSubstr("Reshape"));
  }
}

TEST_P(SessionPartsTest, ShapesBeyondWhatIsReadAreErrors) {
  OnnxModel m;
  m.Input("x", {"n"}).Input("shape", {"5000"}, onnx::TensorProto::INT64).Output("y");
  m.Node("ConstantOfShape", {"shape"}, {"y"});
  m.Node("Identity", {"x"}, {"z"});
  FORGE_ASSERT_OK_AND_ASSIGN(auto session, Open(m, GetParam()));
  const NamedTensor in[] = {{"x", Iota({1})},
                            {"shape", IntTensor({5000}, std::vector<int64_t>(5000, 1))}};
  const auto out = session->Run(in);
  ASSERT_FALSE(out.ok());
  EXPECT_THAT(Message(out.status()), HasSubstr("ConstantOfShape"));
}

TEST_P(SessionPartsTest, DataGiveACount) {
  OnnxModel m;
  m.Input("x", {"n", "m"}).Output("places", onnx::TensorProto::INT64).Output("rows");
  m.Node("Relu", {"x"}, {"positive"});
  m.Node("NonZero", {"positive"}, {"places"});
  m.Ints("zero", {1}, {0});
  m.Node("Gather", {"places", "zero"}, {"row_numbers"});
  m.Node("Gather", {"x", "row_numbers"}, {"rows"});
  FORGE_ASSERT_OK_AND_ASSIGN(auto session, Open(m, GetParam()));
  const NamedTensor in[] = {{"x", FloatTensor({2, 3}, {-1, 2, 0, 4, -5, 6})}};
  FORGE_ASSERT_OK_AND_ASSIGN(auto out, session->Run(in));
  EXPECT_EQ(ShapeOf(out[0].value), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(Numbers(out[0].value), (std::vector<double>{0, 1, 1, 1, 0, 2}));
  EXPECT_EQ(ShapeOf(out[1].value), (std::vector<int64_t>{1, 3, 3}));
  const NamedTensor none[] = {{"x", FloatTensor({1, 2}, {-1, -2})}};
  FORGE_ASSERT_OK_AND_ASSIGN(out, session->Run(none));
  EXPECT_EQ(ShapeOf(out[0].value), (std::vector<int64_t>{2, 0}));
}

// y = the positions of what is positive; z = f32[u] of their number, which is at most `most`.
std::shared_ptr<const Model> Positions(int64_t most) {
  auto m = std::make_unique<ir::Module>();
  const auto symbol = std::make_shared<ir::Symbol>(ir::Symbol{.name = "u", .max = most});
  m->AddSymbol(symbol);
  const ir::Dim n(m->SymbolNamed("n")), u(symbol);
  ir::Function& f = *m->AddFunction("main");
  const ir::Value x = f.Argument("x", ir::Type::Tensor(DType::kF32, {n}));
  const ir::Value positive = f(ir::Greater{}, {x, x * 0.0});
  const ir::Value ones = convert(positive, DType::kI64);
  const ir::Value count = f(ir::Reduce{.kind = ir::ReduceKind::kSum, .keep_dims = false}, {ones});
  f(ir::BindSymbol{u}, {count});
  f.Return("y", f(ir::Nonzero{.count = u}, {positive}));
  f.Return("z", convert(f(ir::Iota{.count = u}, {}) + count, DType::kF32));
  return std::make_shared<const Model>(std::move(m));
}

TEST_P(SessionPartsTest, ARunBindsASymbol) {
  FORGE_ASSERT_OK_AND_ASSIGN(const DeviceRef device, OpenDevice(GetParam(), {}));
  FORGE_ASSERT_OK_AND_ASSIGN(auto session, Session::Create(Positions(3), device, {}));
  ASSERT_TRUE(session->runs_in_parts());
  for (const auto& x : {std::vector<float>{-1, 2, 3, -4}, {-1, -1, -1, -1}, {1, 2, 3, -1}}) {
    const NamedTensor in[] = {{"x", FloatTensor({4}, x)}};
    FORGE_ASSERT_OK_AND_ASSIGN(auto out, session->Run(in));
    std::vector<double> places, numbers;
    for (size_t i = 0; i < x.size(); ++i)
      if (x[i] > 0) places.push_back(static_cast<double>(i));
    for (size_t i = 0; i < places.size(); ++i)
      numbers.push_back(static_cast<double>(i + places.size()));
    EXPECT_EQ(ShapeOf(out[0].value),
              (std::vector<int64_t>{1, static_cast<int64_t>(places.size())}));
    EXPECT_EQ(Numbers(out[0].value), places);
    EXPECT_EQ(Numbers(out[1].value), numbers);
  }
  const NamedTensor many[] = {{"x", FloatTensor({4}, {1, 2, 3, 4})}};
  const auto out = session->Run(many);
  ASSERT_FALSE(out.ok());
  EXPECT_THAT(Message(out.status()), HasSubstr("u cannot be 4"));
}

// torch.masked_select.
TEST_P(SessionPartsTest, AMaskSelectsElements) {
  OnnxModel m;
  m.Input("x", {"n", "m"}).Input("mask", {"n", "m"}, onnx::TensorProto::BOOL).Output("y");
  m.Ints("flat", {1}, {-1});
  m.Node("Reshape", {"mask", "flat"}, {"condition"});
  m.Node("Compress", {"x", "condition"}, {"y"});
  FORGE_ASSERT_OK_AND_ASSIGN(auto session, Open(m, GetParam()));
  ir::HostValue mask = *ir::HostValue::Zeros(DType::kBool, std::vector<int64_t>{2, 3});
  const NamedTensor none[] = {{"x", Iota({2, 3})}, {"mask", mask}};
  FORGE_ASSERT_OK_AND_ASSIGN(auto out, session->Run(none));
  EXPECT_EQ(ShapeOf(out[0].value), (std::vector<int64_t>{0}));
  for (const int64_t at : {1, 2, 5}) mask.SetI64(at, 1);
  const NamedTensor in[] = {{"x", Iota({2, 3})}, {"mask", mask}};
  FORGE_ASSERT_OK_AND_ASSIGN(out, session->Run(in));
  EXPECT_EQ(Numbers(out[0].value), (std::vector<double>{1, 2, 5}));
}

// torch.nn.functional.one_hot without num_classes.
TEST_P(SessionPartsTest, DataGiveTheClassesOfAOneHot) {
  OnnxModel m;
  m.Input("x", {"n"}, onnx::TensorProto::INT64).Output("y");
  m.Ints("one", {1}, {1}).Floats("values", {2}, {0, 1});
  m.Node("ReduceMax", {"x"}, {"last"});
  m.Node("Add", {"last", "one"}, {"depth"});
  m.Node("OneHot", {"x", "depth", "values"}, {"y"});
  FORGE_ASSERT_OK_AND_ASSIGN(auto session, Open(m, GetParam()));
  const NamedTensor in[] = {{"x", IntTensor({3}, {2, 0, 1})}};
  FORGE_ASSERT_OK_AND_ASSIGN(auto out, session->Run(in));
  EXPECT_EQ(ShapeOf(out[0].value), (std::vector<int64_t>{3, 3}));
  EXPECT_EQ(Numbers(out[0].value), (std::vector<double>{0, 0, 1, 1, 0, 0, 0, 1, 0}));
}

// The numbers are onnxruntime's; one point in each box would give 6 and 0.
TEST_P(SessionPartsTest, BoxesTellTheirPoints) {
  OnnxModel m(16);
  m.Input("x", {"1", "1", "3", "3"}).Input("r", {"n", "4"}).Ints("b", {2}, {0, 0}).Output("y");
  Set(m.Node("RoiAlign", {"x", "r", "b"}, {"y"}), "mode", std::string_view("avg"));
  FORGE_ASSERT_OK_AND_ASSIGN(auto session, Open(m, GetParam()));
  const NamedTensor in[] = {{"x", FloatTensor({1, 1, 3, 3}, {6, 0, 6, 0, 0, 0, 0, 0, 18})},
                            {"r", FloatTensor({2, 4}, {0, 0, 1, 1, 0, 0, 3, 2})}};
  FORGE_ASSERT_OK_AND_ASSIGN(auto out, session->Run(in));
  EXPECT_THAT(Numbers(out[0].value), ElementsAre(DoubleNear(6, 1e-6), DoubleNear(2, 1e-6)));
}

// Constants are computed while types are resolved, several of one operator.
TEST_P(SessionPartsTest, ConstantsBroadcast) {
  OnnxModel m;
  m.Input("x", {"n"}).Output("places", onnx::TensorProto::INT64).Output("sum");
  m.Floats("a", {2, 3}, {0, 1, 2, 3, 4, 5})
      .Floats("b", {3}, {10, 20, 30})
      .Floats("c", {2, 1}, {1, 2});
  m.Node("NonZero", {"x"}, {"places"});
  m.Node("Add", {"a", "b"}, {"ab"});
  m.Node("Mul", {"ab", "c"}, {"sum"});
  FORGE_ASSERT_OK_AND_ASSIGN(auto session, Open(m, GetParam()));
  const NamedTensor in[] = {{"x", FloatTensor({2}, {0, 1})}};
  FORGE_ASSERT_OK_AND_ASSIGN(auto out, session->Run(in));
  EXPECT_EQ(ShapeOf(out[1].value), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(Numbers(out[1].value), (std::vector<double>{10, 21, 32, 26, 48, 70}));
}

// Two branches of other shapes, which capture a value around them.
TEST_P(SessionPartsTest, AConditionChoosesABranch) {
  OnnxModel m;
  m.Input("go", {}, onnx::TensorProto::BOOL).Input("x", {"n"}).Output("y");
  m.Node("Neg", {"x"}, {"minus"});
  onnx::NodeProto& node = m.Node("If", {"go"}, {"y"});
  OnnxModel yes, no;
  yes.Node("Exp", {"minus"}, {"a"});
  yes.Output("a");
  no.Node("Concat", {"minus", "x"}, {"b"});
  Set(*no.graph().mutable_node(0), "axis", int64_t{0});
  no.Output("b");
  *Attribute(node, "then_branch", onnx::AttributeProto::GRAPH).mutable_g() = yes.graph();
  *Attribute(node, "else_branch", onnx::AttributeProto::GRAPH).mutable_g() = no.graph();
  FORGE_ASSERT_OK_AND_ASSIGN(auto session, Open(m, GetParam()));
  for (const bool go : {true, false, true}) {
    const NamedTensor in[] = {{"go", Bool(go)}, {"x", FloatTensor({2}, {0, 1})}};
    FORGE_ASSERT_OK_AND_ASSIGN(auto out, session->Run(in));
    ASSERT_EQ(out[0].value.elements(), go ? 2 : 4);
    EXPECT_NEAR(out[0].value.f64(1), go ? 0.36787944 : -1, 1e-6);
  }
}

// Doubles y until it has more than `limit` elements, and records the sum of each step.
OnnxModel GrowingLoop(bool counted) {
  OnnxModel m;
  m.Input("steps", {}, onnx::TensorProto::INT64).Input("y0", {"n"});
  m.Input("limit", {}, onnx::TensorProto::INT64).Output("y").Output("sums");
  OnnxModel body;
  body.Input("i", {}, onnx::TensorProto::INT64).Input("go", {}, onnx::TensorProto::BOOL);
  body.Input("y_in", {"k"}).Output("go_on").Output("y_out").Output("sum");
  body.Node("Concat", {"y_in", "y_in"}, {"y_out"});
  Set(*body.graph().mutable_node(0), "axis", int64_t{0});
  body.Node("Size", {"y_out"}, {"size"});
  body.Node("LessOrEqual", {"size", "limit"}, {"go_on"});
  Set(body.Node("ReduceSum", {"y_out"}, {"sum"}), "keepdims", int64_t{0});
  onnx::NodeProto& loop = m.Node("Loop", {counted ? "steps" : "", "", "y0"}, {"y", "sums"});
  *Attribute(loop, "body", onnx::AttributeProto::GRAPH).mutable_g() = body.graph();
  return m;
}

std::vector<NamedTensor> LoopInputs(int64_t steps, int64_t limit) {
  return {{"steps", IntTensor({}, {steps})},
          {"y0", FloatTensor({2}, {1, 2})},
          {"limit", IntTensor({}, {limit})}};
}

TEST_P(SessionPartsTest, ALoopGrowsWhatItCarries) {
  FORGE_ASSERT_OK_AND_ASSIGN(auto session, Open(GrowingLoop(true), GetParam()));
  FORGE_ASSERT_OK_AND_ASSIGN(auto out, session->Run(LoopInputs(3, 100)));
  EXPECT_EQ(out[0].value.elements(), 16);
  EXPECT_EQ(Numbers(out[1].value), (std::vector<double>{6, 12, 24}));
  FORGE_ASSERT_OK_AND_ASSIGN(out, session->Run(LoopInputs(100, 10)));
  EXPECT_EQ(out[0].value.elements(), 16);
}

TEST_P(SessionPartsTest, ALoopOfNoStepsReturnsWhatItGot) {
  FORGE_ASSERT_OK_AND_ASSIGN(auto session, Open(GrowingLoop(true), GetParam()));
  FORGE_ASSERT_OK_AND_ASSIGN(auto out, session->Run(LoopInputs(0, 100)));
  EXPECT_EQ(Numbers(out[0].value), (std::vector<double>{1, 2}));
  EXPECT_EQ(out[1].value.elements(), 0);
}

TEST_P(SessionPartsTest, ALoopWithoutAnEndFails) {
  FORGE_ASSERT_OK_AND_ASSIGN(auto session,
                             Open(GrowingLoop(false), GetParam(), {.max_iterations = 4}));
  const auto out = session->Run(LoopInputs(0, INT64_MAX));
  EXPECT_EQ(out.status().code(), absl::StatusCode::kResourceExhausted) << out.status();
  EXPECT_THAT(Message(out.status()), HasSubstr("4 steps"));
  EXPECT_TRUE(session->Run(LoopInputs(0, 5)).ok());
}

TEST_P(SessionPartsTest, AScalarHasOneElement) {
  OnnxModel m;
  m.Input("x", {"n"}).Output("size");
  m.Node("SequenceConstruct", {"x"}, {"sequence"});
  m.Node("SequenceLength", {"sequence"}, {"length"});
  m.Node("Size", {"length"}, {"size"});
  FORGE_ASSERT_OK_AND_ASSIGN(auto session, Open(m, GetParam()));
  const NamedTensor in[] = {{"x", Iota({3})}};
  FORGE_ASSERT_OK_AND_ASSIGN(auto out, session->Run(in));
  EXPECT_THAT(Numbers(out[0].value), ElementsAre(1));
}

// Running sums of rows, of which the last comes first; an opset before Slice has steps.
TEST_P(SessionPartsTest, AScanStoresItsRowsBackwards) {
  OnnxModel m(9);
  m.Input("x", {"n", "2"}).Output("sum").Output("rows");
  m.Floats("zero", {2}, {0, 0});
  onnx::NodeProto& scan = m.Node("Scan", {"zero", "x"}, {"sum", "rows"});
  Set(scan, "num_scan_inputs", int64_t{1});
  Set(scan, "scan_output_directions", std::vector<int64_t>{1});
  onnx::GraphProto& body = *Attribute(scan, "body", onnx::AttributeProto::GRAPH).mutable_g();
  for (const char* name : {"carried", "row"}) body.add_input()->set_name(name);
  for (const char* name : {"next", "kept"}) body.add_output()->set_name(name);
  *body.add_node() = NewNode("Add", {"carried", "row"}, "next");
  *body.add_node() = NewNode("Identity", {"next"}, "kept");
  FORGE_ASSERT_OK_AND_ASSIGN(auto session, Open(m, GetParam()));
  const NamedTensor in[] = {{"x", Iota({3, 2})}};
  FORGE_ASSERT_OK_AND_ASSIGN(auto out, session->Run(in));
  EXPECT_THAT(Numbers(out[0].value), ElementsAre(6, 9));
  EXPECT_THAT(Numbers(out[1].value), ElementsAre(6, 9, 2, 4, 0, 1));
}

TEST_P(SessionPartsTest, RunAfterAModelIsStored) {
  FORGE_ASSERT_OK_AND_ASSIGN(auto module, GrowingLoop(true).Import());
  const TempFolder folder;
  ASSERT_TRUE(WriteModel(*module, folder / "loop.bin").ok());
  FORGE_ASSERT_OK_AND_ASSIGN(auto model, Model::Load(folder / "loop.bin"));
  FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef device, OpenDevice(GetParam(), {}));
  FORGE_ASSERT_OK_AND_ASSIGN(auto session, Session::Create(model, device));
  FORGE_ASSERT_OK_AND_ASSIGN(auto out, session->Run(LoopInputs(2, 100)));
  EXPECT_EQ(out[0].value.elements(), 8);
}

TEST_P(SessionPartsTest, TellsItsParts) {
  FORGE_ASSERT_OK_AND_ASSIGN(auto session, Open(GrowingLoop(true), GetParam()));
  EXPECT_TRUE(session->parts().empty());
  ASSERT_TRUE(session->Run(LoopInputs(2, 100)).ok());
  EXPECT_FALSE(session->parts().empty());
  EXPECT_THAT(Explain(*session), HasSubstr("part 1 of"));
}

TEST_P(SessionPartsTest, RunsOnMemoryOfTheCaller) {
  FORGE_ASSERT_OK_AND_ASSIGN(auto session, Open(ReshapeByInput(), GetParam()));
  const ir::HostValue x = Iota({6}), shape = IntTensor({2}, {3, 2});
  const TensorRef in[] = {{x.dtype(), x.shape(), x.bytes()},
                          {shape.dtype(), shape.shape(), shape.bytes()}};
  std::vector<float> y(6);
  const std::span<uint8_t> out(reinterpret_cast<uint8_t*>(y.data()), 24);
  const absl::Status ran = session->Run(in, std::span(&out, 1));
  ASSERT_TRUE(ran.ok()) << ran;
  EXPECT_EQ(y[5], 10);
  const std::span<uint8_t> small = out.first(20);
  EXPECT_THAT(Message(session->Run(in, std::span(&small, 1))), HasSubstr("20 bytes"));
}

TEST_P(SessionPartsTest, KeepsAFewShapesAndForgetsTheOldest) {
  FORGE_ASSERT_OK_AND_ASSIGN(auto session, Open(ReshapeByInput(), GetParam()));
  for (int64_t n = 1; n <= 40; ++n) {
    const NamedTensor in[] = {{"x", Iota({n})}, {"shape", IntTensor({2}, {n, 1})}};
    FORGE_ASSERT_OK_AND_ASSIGN(auto out, session->Run(in));
    EXPECT_EQ(out[0].value.f64(n - 1), 2.0 * static_cast<double>(n - 1));
  }
}

INSTANTIATE_TEST_SUITE_P(AllDevices, SessionPartsTest, ::testing::ValuesIn(Devices()),
                         NameOfParameter);

}  // namespace
}  // namespace forge
