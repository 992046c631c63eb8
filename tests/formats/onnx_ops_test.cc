// SPDX-License-Identifier: Apache-2.0
// What operators of files come to: small models, imported and evaluated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/ir_values.h"
#include "tests/support/onnx_model.h"
#include "tests/support/status_matchers.h"

namespace forge {
namespace {

using absl::StatusCode;
using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

// A model of one node whose first operand is "x"; the others are constants.
OnnxModel One(std::string_view op, int64_t opset, const std::vector<std::string>& shape,
              std::vector<std::string> operands = {"x"}) {
  OnnxModel m(opset);
  m.Input("x", shape).Output("y");
  m.Node(op, std::move(operands), {"y"});
  return m;
}
onnx::NodeProto& NodeOf(OnnxModel& m) { return *m.graph().mutable_node(0); }

std::vector<float> RunOne(const OnnxModel& m, ir::HostValue x) {
  const auto out = ImportAndRun(m, {std::move(x)});
  EXPECT_TRUE(out.ok()) << out.status();
  std::vector<float> numbers;
  if (!out.ok()) return numbers;
  for (int64_t i = 0; i < (*out)[0].elements(); ++i)
    numbers.push_back(static_cast<float>((*out)[0].f64(i)));
  return numbers;
}

TEST(OnnxOpsTest, LessIsGreaterOfExchangedOperands) {
  OnnxModel m = One("Less", 13, {"3"}, {"x", "c"});
  m.Floats("c", {1}, {1});
  EXPECT_THAT(RunOne(m, Iota({3})), ElementsAre(1, 0, 0));
  m = One("LessOrEqual", 16, {"3"}, {"x", "c"});
  m.Floats("c", {1}, {1});
  EXPECT_THAT(RunOne(m, Iota({3})), ElementsAre(1, 1, 0));
}

// Newer than the message's own list of types.
constexpr int64_t kOnnxF8E4M3 = 17, kOnnxF8E5M2 = 19;

TEST(OnnxOpsTest, CastSaturatesFloatsOfAByteUnlessTold) {
  const auto through = [](int64_t type, int64_t saturate) {
    OnnxModel m(19);
    m.Input("x", {"4"}).Output("y");
    onnx::NodeProto& narrow = m.Node("Cast", {"x"}, {"a"});
    Set(narrow, "to", type);
    Set(narrow, "saturate", saturate);
    Set(m.Node("Cast", {"a"}, {"y"}), "to", int64_t{onnx::TensorProto::FLOAT});
    return m;
  };
  const ir::HostValue x = FloatTensor({4}, {1.0625f, -500, 1e9f, -INFINITY});
  EXPECT_THAT(RunOne(through(kOnnxF8E4M3, 1), x), ElementsAre(1, -448, 448, -448));
  EXPECT_THAT(RunOne(through(kOnnxF8E5M2, 1), x), ElementsAre(1, -512, 57344, -57344));
  EXPECT_THAT(RunOne(through(kOnnxF8E5M2, 0), x), ElementsAre(1, -512, INFINITY, -INFINITY));
  const std::vector<float> lost = RunOne(through(kOnnxF8E4M3, 0), x);
  EXPECT_EQ(lost[0], 1);
  for (size_t i = 1; i < 4; ++i) EXPECT_TRUE(std::isnan(lost[i])) << lost[i];
}

// Bytes a = [[0, 1, 2], [3, 4, 5]] times b = [[1, -2], [3, -4], [5, -6]], less these zero points.
OnnxModel MatMulInteger(const std::vector<int>& a0, const std::vector<int>& b0) {
  OnnxModel m(10);
  m.Input("x", {"2", "3"}).Output("y");
  Set(m.Node("Cast", {"x"}, {"a"}), "to", int64_t{onnx::TensorProto::UINT8});
  const auto bytes = [&](const char* name, int32_t type, std::vector<int64_t> dims,
                         const std::vector<int>& values) {
    m.Initializer(name, type, std::move(dims))
        .mutable_int32_data()
        ->Add(values.begin(), values.end());
  };
  const auto dims = [](const std::vector<int>& values) {
    return values.size() == 1 ? std::vector<int64_t>{}
                              : std::vector<int64_t>{static_cast<int64_t>(values.size())};
  };
  bytes("b", onnx::TensorProto::INT8, {3, 2}, {1, -2, 3, -4, 5, -6});
  std::vector<std::string> operands = {"a", "b", a0.empty() ? "" : "a0"};
  if (!a0.empty()) bytes("a0", onnx::TensorProto::UINT8, dims(a0), a0);
  if (!b0.empty()) bytes("b0", onnx::TensorProto::INT8, dims(b0), b0);
  if (!b0.empty()) operands.emplace_back("b0");
  m.Node("MatMulInteger", operands, {"y"});
  return m;
}
std::vector<float> RunMatMulInteger(const std::vector<int>& a0, const std::vector<int>& b0) {
  return RunOne(MatMulInteger(a0, b0), Iota({2, 3}));
}

TEST(OnnxOpsTest, MatMulIntegerTakesZeroPointsAway) {
  EXPECT_THAT(RunMatMulInteger({}, {}), ElementsAre(13, -16, 40, -52));
  EXPECT_THAT(RunMatMulInteger({0}, {0}), ElementsAre(13, -16, 40, -52));
  EXPECT_THAT(RunMatMulInteger({1}, {1, -1}), ElementsAre(4, -4, 22, -31));
  EXPECT_THAT(RunMatMulInteger({1, 2}, {}), ElementsAre(4, -4, 22, -28));
  EXPECT_THAT(RunMatMulInteger({}, {2}), ElementsAre(7, -22, 16, -76));
  EXPECT_FALSE(MatMulInteger({1, 2, 3}, {}).Import().ok());
  EXPECT_FALSE(MatMulInteger({}, {1, 2, 3}).Import().ok());
}

TEST(OnnxOpsTest, NhwcConvHasChannelsBehindThePixels) {
  const auto run = [](const std::vector<std::string>& x, const std::vector<int64_t>& w) {
    OnnxModel m(17);
    m.Input("x", x).Floats("w", w, {1, 10}).Output("y");
    auto* microsoft = m.proto().add_opset_import();
    microsoft->set_domain("com.microsoft");
    microsoft->set_version(1);
    m.Node("NhwcConv", {"x", "w"}, {"y"}).set_domain("com.microsoft");
    std::vector<int64_t> shape;
    for (const std::string& extent : x) shape.push_back(std::stoll(extent));
    return RunOne(m, Iota(shape));
  };
  EXPECT_THAT(run({"1", "2", "2", "2"}, {1, 2, 1, 1}), ElementsAre(10, 32, 54, 76));
  EXPECT_THAT(run({"1", "3", "2", "1"}, {1, 1, 2, 1}), ElementsAre(20, 31, 42, 53));
  EXPECT_THAT(run({"1", "2", "3", "1"}, {1, 1, 1, 2}), ElementsAre(10, 21, 43, 54));
}

// d(x * x * w) = 2 x w dx.
OnnxModel GradientOfAProduct(const std::vector<std::string>& operands, const std::string& of) {
  OnnxModel m(17);
  m.Input("x", {"3"}).Floats("w", {3}, {1, 2, 4}).Output("dx");
  auto* training = m.proto().add_opset_import();
  training->set_domain("ai.onnx.preview.training");
  training->set_version(1);
  m.Node("Mul", {"x", "x"}, {"square"});
  m.Node("Mul", {"square", "w"}, {"y"});
  onnx::NodeProto& node = m.Node("Gradient", operands, {"dx"});
  node.set_domain("ai.onnx.preview.training");
  for (const char* list : {"xs", "zs"})
    Attribute(node, list, onnx::AttributeProto::STRINGS).add_strings(*list == 'x' ? "x" : "w");
  Set(node, "y", of);
  return m;
}

TEST(OnnxOpsTest, GradientWithRespectToSomeOfTheTensors) {
  EXPECT_THAT(RunOne(GradientOfAProduct({"x", "w"}, "y"), Iota({3})), ElementsAre(0, 4, 16));
}

TEST(OnnxOpsTest, GradientRefusesOtherValuesAndUnknownTensors) {
  EXPECT_THAT(GradientOfAProduct({"square", "w"}, "y").Import(),
              Fails(StatusCode::kDataLoss, "input 0 is not 'x'"));
  EXPECT_THAT(GradientOfAProduct({"x"}, "y").Import(),
              Fails(StatusCode::kDataLoss, "1 inputs for 2 tensors"));
  EXPECT_THAT(GradientOfAProduct({"x", "w"}, "z").Import(),
              Fails(StatusCode::kDataLoss, "'z', which is not defined"));
}

// Bytes x = [[0, 1, 2], [3, 4, 5]] with these scales and zero points (none: empty).
OnnxModel Dequantized(int64_t opset, const std::vector<float>& scales,
                      const std::vector<int>& zero_points, int64_t axis = 1) {
  OnnxModel m(opset);
  m.Input("x", {"2", "3"}).Output("y");
  Set(m.Node("Cast", {"x"}, {"q"}), "to", int64_t{onnx::TensorProto::UINT8});
  const auto dims = [](size_t n) {
    return n == 1 ? std::vector<int64_t>{} : std::vector<int64_t>{static_cast<int64_t>(n)};
  };
  m.Floats("s", dims(scales.size()), scales);
  if (!zero_points.empty())
    m.Initializer("z", onnx::TensorProto::UINT8, dims(zero_points.size()))
        .mutable_int32_data()
        ->Add(zero_points.begin(), zero_points.end());
  onnx::NodeProto& node =
      m.Node("DequantizeLinear", {"q", "s", zero_points.empty() ? "" : "z"}, {"y"});
  if (axis != 1) Set(node, "axis", axis);
  return m;
}

TEST(OnnxOpsTest, DequantizeLinearOfTheTensorAndOfAnAxis) {
  const auto run = [](const OnnxModel& m) { return RunOne(m, Iota({2, 3})); };
  EXPECT_THAT(run(Dequantized(10, {0.5}, {})), ElementsAre(0, 0.5, 1, 1.5, 2, 2.5));
  EXPECT_THAT(run(Dequantized(13, {0.5}, {4})), ElementsAre(-2, -1.5, -1, -0.5, 0, 0.5));
  EXPECT_THAT(run(Dequantized(21, {1, 2, 0.5}, {0, 0, 0})), ElementsAre(0, 2, 1, 3, 8, 2.5));
  EXPECT_THAT(run(Dequantized(13, {1, 2, 0.5}, {1, 200, 4}, -1)),
              ElementsAre(-1, -398, -1, 2, -392, 0.5));
  EXPECT_THAT(run(Dequantized(13, {0.25, 2}, {1, 3}, 0)), ElementsAre(-0.25, 0, 0.25, 0, 2, 4));
}

TEST(OnnxOpsTest, DequantizeLinearRefusesWhatItDoesNotCompute) {
  EXPECT_THAT(Dequantized(13, {1, 2}, {}).Import(),
              Fails(StatusCode::kDataLoss, "f32[2] scales or zero points for axis 1"));
  EXPECT_THAT(Dequantized(10, {1, 2, 3}, {}).Import(), Fails(StatusCode::kDataLoss, "for axis 0"));
  OnnxModel m = Dequantized(21, {1}, {});
  Set(*m.graph().mutable_node(1), "block_size", int64_t{3});
  EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, "block_size"));
  m = One("DequantizeLinear", 21, {"2"}, {"x", "s"});
  m.Floats("s", {}, {1});
  EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, "x is f32[2], which cannot be dequantised"));
}

// Blocks of two along the last axis; the last one is cut off.
TEST(OnnxOpsTest, DequantizeLinearInBlocks) {
  OnnxModel m = Dequantized(21, {1}, {});
  Set(*m.graph().mutable_node(1), "block_size", int64_t{2});
  m.graph().mutable_node(1)->set_input(1, "b");
  m.Floats("b", {2, 2}, {1, 10, 0.5, 100});
  EXPECT_THAT(RunOne(m, Iota({2, 3})), ElementsAre(0, 1, 20, 1.5, 2, 500));
  Set(*m.graph().mutable_node(1), "axis", int64_t{0});
  EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, "for a block_size of 2 along axis 0"));
}

// Half to even; beyond the range the nearest end.
TEST(OnnxOpsTest, QuantizeLinearRoundsAndSaturates) {
  OnnxModel m(21);
  m.Input("x", {"5"}).Floats("s", {}, {2}).Output("y");
  m.Initializer("z", onnx::TensorProto::INT8, {}).add_int32_data(1);
  m.Node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  Set(m.Node("Cast", {"q"}, {"y"}), "to", int64_t{onnx::TensorProto::FLOAT});
  EXPECT_THAT(RunOne(m, FloatTensor({5}, {1, 3, -5, 1000, -1000})),
              ElementsAre(1, 3, -1, 127, -128));
}

TEST(OnnxOpsTest, CastToIntegersOfLessThanAByteWraps) {
  OnnxModel m(21);
  m.Input("x", {"5"}).Output("y");
  constexpr int64_t kOnnxI4 = 22;
  Set(m.Node("Cast", {"x"}, {"a"}), "to", kOnnxI4);
  Set(m.Node("Cast", {"a"}, {"y"}), "to", int64_t{onnx::TensorProto::FLOAT});
  EXPECT_THAT(RunOne(m, FloatTensor({5}, {-9, -8, 7.9f, 8, 3})), ElementsAre(7, -8, 7, -8, 3));
}

TEST(OnnxOpsTest, BitCastKeepsTheBits) {
  const auto to = [](int64_t type) {
    OnnxModel m = One("BitCast", 26, {"2"});
    Set(NodeOf(m), "to", type);
    return m;
  };
  EXPECT_THAT(RunOne(to(onnx::TensorProto::INT32), FloatTensor({2}, {1, -0.0f})),
              ElementsAre(0x3f800000, -2147483648.0f));
  EXPECT_THAT(to(onnx::TensorProto::INT64).Import(),
              Fails(StatusCode::kDataLoss, "f32 and i64 differ in width"));
}

TEST(OnnxOpsTest, PowOfIntegersIsExact) {
  OnnxModel m(15);
  m.Input("x", {"3"}, onnx::TensorProto::INT64).Output("y", onnx::TensorProto::INT64);
  m.Ints("e", {3}, {15, 3, -1}).Node("Pow", {"x", "e"}, {"y"});
  EXPECT_THAT(RunOne(m, IntTensor({3}, {3, -5, 2})), ElementsAre(14348907, -125, 0));
}

TEST(OnnxOpsTest, PowTakesAnExponentOfAnotherType) {
  OnnxModel m = One("Pow", 15, {"4"}, {"x", "e"});
  m.Ints("e", {}, {3});
  EXPECT_THAT(RunOne(m, Iota({4})), ElementsAre(0, 1, 8, 27));
}

TEST(OnnxOpsTest, ExpandTakesTheLargerOfBothShapes) {
  OnnxModel m = One("Expand", 13, {"2", "1"}, {"x", "s"});
  m.Ints("s", {2}, {1, 3});
  EXPECT_THAT(RunOne(m, Iota({2, 1})), ElementsAre(0, 0, 0, 1, 1, 1));
}

TEST(OnnxOpsTest, ExpandTakesAShapeThatIsComputed) {
  OnnxModel m(13);
  m.Input("x", {"2", "1"}).Input("s", {"3"}, onnx::TensorProto::INT64).Output("y");
  m.Node("Expand", {"x", "s"}, {"y"});
  FORGE_ASSERT_OK_AND_ASSIGN(const auto out,
                             ImportAndRun(m, {Iota({2, 1}), IntTensor({3}, {2, 1, 2})}));
  EXPECT_THAT(out[0].shape(), ElementsAre(2, 2, 2));
  EXPECT_EQ(out[0].f64(6), 1);
}

TEST(OnnxOpsTest, PadHasModes) {
  const auto padded = [](std::string_view mode, int64_t opset) {
    OnnxModel m = One("Pad", opset, {"3"}, {"x", "p"});
    m.Ints("p", {2}, {2, 1});
    Set(NodeOf(m), "mode", mode);
    return m;
  };
  EXPECT_THAT(RunOne(padded("constant", 11), Iota({3})), ElementsAre(0, 0, 0, 1, 2, 0));
  EXPECT_THAT(RunOne(padded("reflect", 13), Iota({3})), ElementsAre(2, 1, 0, 1, 2, 1));
  EXPECT_THAT(RunOne(padded("edge", 18), Iota({3})), ElementsAre(0, 0, 0, 1, 2, 2));
  EXPECT_THAT(RunOne(padded("wrap", 19), Iota({3})), ElementsAre(1, 2, 0, 1, 2, 0));
  EXPECT_THAT(padded("wrap", 13).Import(), Fails(StatusCode::kDataLoss, "mode 'wrap'"));
}

TEST(OnnxOpsTest, PadTakesAValueAndAxes) {
  OnnxModel m = One("Pad", 18, {"2", "1"}, {"x", "p", "v", "a"});
  m.Ints("p", {2}, {1, 0}).Floats("v", {}, {7}).Ints("a", {1}, {-1});
  EXPECT_THAT(RunOne(m, Iota({2, 1})), ElementsAre(7, 0, 7, 1));
  m.Ints("q", {3}, {1, 0, 0});
  NodeOf(m).set_input(1, "q");
  EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, "3 widths for 1 axes"));
}

TEST(OnnxOpsTest, PadOfIntegersBeyondADoubleIsExact) {
  constexpr int64_t kOdd = (int64_t{1} << 53) + 1;
  OnnxModel m(18);
  m.Input("x", {"1"}, onnx::TensorProto::INT64).Output("y");
  m.Ints("p", {2}, {1, 0}).Ints("v", {}, {kOdd});
  m.Node("Pad", {"x", "p", "v"}, {"y"});
  FORGE_ASSERT_OK_AND_ASSIGN(const auto out, ImportAndRun(m, {IntTensor({1}, {3})}));
  EXPECT_EQ(out[0].i64(0), kOdd);
}

TEST(OnnxOpsTest, OldPadHasAttributes) {
  OnnxModel m = One("Pad", 9, {"2"});
  Set(NodeOf(m), "pads", std::vector<int64_t>{1, 1});
  Set(NodeOf(m), "value", 5.0f);
  EXPECT_THAT(RunOne(m, Iota({2})), ElementsAre(5, 0, 1, 5));
}

TEST(OnnxOpsTest, ReductionsThatAreMadeOfOthers) {
  const auto reduced = [](std::string_view op) {
    OnnxModel m = One(op, 13, {"2", "2"});
    Set(NodeOf(m), "axes", std::vector<int64_t>{1});
    return RunOne(m, FloatTensor({2, 2}, {3, -4, 1, 2}));
  };
  const auto near = [](const std::vector<float>& v) { return Pointwise(FloatNear(1e-5f), v); };
  EXPECT_THAT(reduced("ReduceL1"), near({7, 3}));
  EXPECT_THAT(reduced("ReduceL2"), near({5, std::sqrt(5.0f)}));
  EXPECT_THAT(reduced("ReduceSumSquare"), near({25, 5}));
  EXPECT_THAT(reduced("ReduceLogSumExp"), near({3.0009115f, 2.3132617f}));
  EXPECT_THAT(reduced("ReduceMin"), near({-4, 1}));
  EXPECT_THAT(reduced("ReduceProd"), near({-12, 2}));
}

TEST(OnnxOpsTest, LogSumExpOfInfinities) {
  const float inf = INFINITY;
  OnnxModel m = One("ReduceLogSumExp", 18, {"3", "2"}, {"x", "a"});
  m.Ints("a", {1}, {1});
  Set(NodeOf(m), "keepdims", int64_t{0});
  EXPECT_THAT(RunOne(m, FloatTensor({3, 2}, {-inf, -inf, inf, 0, 1000, 1000})),
              ElementsAre(-inf, inf, FloatNear(1000.6931f, 1e-3f)));
}

// -7 is far enough out that a step rounded to f16 shows.
TEST(OnnxOpsTest, ActivationsOfHalvesRoundOnce) {
  const auto of = [](std::string_view op, int64_t opset) {
    OnnxModel m(opset);
    m.Input("x", {"1"}, onnx::TensorProto::FLOAT16).Output("y");
    m.Node(op, {"x"}, {"y"});
    ir::HostValue x = *ir::HostValue::Zeros(DType::kF16, std::vector<int64_t>{1});
    x.Set(0, op == "Softplus" || op == "Mish" ? -7 : -0.01);
    return RunOne(m, std::move(x))[0];
  };
  EXPECT_NEAR(of("Softplus", 1), 9.1147e-4, 4e-7);
  EXPECT_NEAR(of("Mish", 18), -6.3803e-3, 3e-6);
  EXPECT_NEAR(of("Elu", 6), -9.9524e-3, 6e-6);
  EXPECT_NEAR(of("Selu", 6), -1.74971e-2, 1e-5);
}

// Far from 0, and close to it, what is added to 1 or taken from it would be lost.
TEST(OnnxOpsTest, ActivationsKeepWhatIsSmallBesideOne) {
  const auto expect = [](std::string_view op, int64_t opset, float x, double y) {
    EXPECT_NEAR(RunOne(One(op, opset, {"1"}), FloatTensor({1}, {x}))[0], y, 1e-6 * std::fabs(y))
        << op;
  };
  expect("Softplus", 1, -13.15139f, 1.9427791721328475e-06);
  expect("Softplus", 1, -80, 1.8048513878454153e-35);
  expect("Mish", 18, -13.15139f, -2.555024672360057e-05);
  expect("Elu", 6, -1e-5f, -9.999949747547945e-06);
  expect("Elu", 6, -1e4f, -1);
}

TEST(OnnxOpsTest, Activations) {
  const auto of = [](std::string_view op, int64_t opset) {
    return RunOne(One(op, opset, {"3"}), FloatTensor({3}, {-1, 0, 2}));
  };
  const auto near = [](const std::vector<float>& v) { return Pointwise(FloatNear(1e-5f), v); };
  EXPECT_THAT(of("LeakyRelu", 16), near({-0.01f, 0, 2}));
  EXPECT_THAT(of("Elu", 6), near({-0.63212056f, 0, 2}));
  EXPECT_THAT(of("Selu", 6), near({-1.1113307f, 0, 2.101402f}));
  EXPECT_THAT(of("Softplus", 1), near({0.31326169f, 0.69314718f, 2.126928f}));
  EXPECT_THAT(of("Softsign", 1), near({-0.5f, 0, 0.6666667f}));
  EXPECT_THAT(of("Mish", 18), near({-0.30340144f, 0, 1.9439590f}));
  EXPECT_THAT(of("Gelu", 20), near({-0.15865525f, 0, 1.9544997f}));
  EXPECT_THAT(of("Reciprocal", 13), ElementsAre(-1, INFINITY, 0.5f));
}

TEST(OnnxOpsTest, TrigonometricAndHyperbolicFunctions) {
  const auto of = [](std::string_view op, int64_t opset) {
    return RunOne(One(op, opset, {"3"}), FloatTensor({3}, {-1, 0, 2}));
  };
  const auto near = [](const std::vector<float>& v) { return Pointwise(FloatNear(1e-6f), v); };
  EXPECT_THAT(of("Sin", 7), near({-0.84147098f, 0, 0.90929743f}));
  EXPECT_THAT(of("Cos", 7), near({0.54030231f, 1, -0.41614684f}));
  EXPECT_THAT(of("Sinh", 9), near({-1.17520119f, 0, 3.62686041f}));
  EXPECT_THAT(of("Asinh", 9), near({-0.88137359f, 0, 1.44363548f}));
  EXPECT_THAT(of("Tan", 7), near({-1.55740772f, 0, -2.18503986f}));
  EXPECT_THAT(of("Atan", 7), near({-0.78539816f, 0, 1.10714872f}));
  EXPECT_THAT(of("Cosh", 9), near({1.54308063f, 1, 3.76219569f}));
  const auto edge = [](std::string_view op, int64_t opset) {
    return RunOne(One(op, opset, {"3"}), FloatTensor({3}, {-1, 0.5, 1}));
  };
  EXPECT_THAT(edge("Asin", 7), near({-1.57079633f, 0.52359878f, 1.57079633f}));
  EXPECT_THAT(edge("Acos", 7), near({3.14159265f, 1.04719755f, 0}));
  EXPECT_THAT(edge("Atanh", 9), ElementsAre(-INFINITY, FloatNear(0.54930614f, 1e-6f), INFINITY));
  EXPECT_EQ(edge("Acosh", 9)[2], 0);
}

TEST(OnnxOpsTest, ModHasTheSignOfTheDivisorOrOfTheDividend) {
  const auto of = [](int64_t fmod, onnx::TensorProto::DataType type, DType dtype) {
    OnnxModel m(13);
    m.Input("a", {"4"}, type).Input("b", {"4"}, type).Output("y");
    Set(m.Node("Mod", {"a", "b"}, {"y"}), "fmod", fmod);
    ir::HostValue a = *ir::HostValue::Zeros(dtype, std::vector<int64_t>{4}), b = a;
    const double dividends[] = {7, -7, 7, -7}, divisors[] = {3, 3, -3, -3};
    for (int64_t i = 0; i < 4; ++i) a.Set(i, dividends[i]), b.Set(i, divisors[i]);
    return ImportAndRun(m, {a, b});
  };
  const auto floored = of(0, onnx::TensorProto::INT32, DType::kI32);
  const auto truncated = of(1, onnx::TensorProto::INT32, DType::kI32);
  const auto floats = of(1, onnx::TensorProto::FLOAT, DType::kF32);
  ASSERT_THAT(floored, Succeeds());
  ASSERT_THAT(truncated, Succeeds());
  ASSERT_THAT(floats, Succeeds());
  EXPECT_THAT(Numbers((*floored)[0]), ElementsAre(1, 2, -2, -1));
  EXPECT_THAT(Numbers((*truncated)[0]), ElementsAre(1, -1, 1, -1));
  EXPECT_THAT(Numbers((*floats)[0]), ElementsAre(1, -1, 1, -1));
  EXPECT_THAT(of(0, onnx::TensorProto::FLOAT, DType::kF32),
              Fails(StatusCode::kDataLoss, "floats need 1"));
}

TEST(OnnxOpsTest, BitShiftFollowsItsDirection) {
  const auto shifted = [](std::string_view direction) {
    OnnxModel m(11);
    m.Input("x", {"3"}, onnx::TensorProto::UINT32)
        .Input("n", {"3"}, onnx::TensorProto::UINT32)
        .Output("y");
    Set(m.Node("BitShift", {"x", "n"}, {"y"}), "direction", direction);
    ir::HostValue x = *ir::HostValue::Zeros(DType::kU32, std::vector<int64_t>{3}), n = x;
    for (int64_t i = 0; i < 3; ++i) x.SetI64(i, 0x80000001), n.SetI64(i, 4 * i);
    return ImportAndRun(m, {x, n});
  };
  const auto left = shifted("LEFT"), right = shifted("RIGHT");
  ASSERT_THAT(left, Succeeds());
  ASSERT_THAT(right, Succeeds());
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ((*left)[0].i64(i), int64_t{uint32_t{0x80000001} << (4 * i)}) << i;
    EXPECT_EQ((*right)[0].i64(i), int64_t{uint32_t{0x80000001} >> (4 * i)}) << i;
  }
  EXPECT_THAT(shifted("UP"), Fails(StatusCode::kDataLoss, "neither LEFT nor RIGHT"));
}

}  // namespace
}  // namespace forge
