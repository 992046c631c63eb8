// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU and RNN of files. Their results against onnxruntime: tests/conformance/differential.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/ir_values.h"
#include "tests/support/onnx_model.h"
#include "tests/support/status_matchers.h"

namespace forge {
namespace {

using absl::StatusCode;

// A layer of one feature and one unit on x [steps, 1, 1] with weights of `gates` gates.
OnnxModel Layer(std::string_view op, int64_t gates, int64_t opset = 14) {
  OnnxModel m(opset);
  m.Input("x", {"2", "1", "1"}).Output("y");
  std::vector<float> weights;
  for (int64_t i = 0; i < gates; ++i) weights.push_back(0.5f + static_cast<float>(i));
  m.Floats("w", {1, gates, 1}, weights).Floats("r", {1, gates, 1}, weights);
  m.Node(op, {"x", "w", "r"}, {"y"});
  return m;
}
onnx::NodeProto& RecurrentNodeOf(OnnxModel& m) { return *m.graph().mutable_node(0); }

// The gates of a file are those of input, output, forget and cell: of 1 each is another number.
TEST(OnnxRecurrentTest, LstmHasTheGatesOfTheFile) {
  OnnxModel m = Layer("LSTM", 4);
  const auto out = ImportAndRun(m, {FloatTensor({2, 1, 1}, {1, 0})});
  ASSERT_TRUE(out.ok()) << out.status();
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  const double c = sigmoid(0.5) * std::tanh(3.5), h = sigmoid(1.5) * std::tanh(c);
  const double d = sigmoid(2.5 * h) * c + sigmoid(0.5 * h) * std::tanh(3.5 * h);
  EXPECT_EQ((*out)[0].rank(), 4);
  EXPECT_NEAR((*out)[0].f64(0), h, 1e-6);
  EXPECT_NEAR((*out)[0].f64(1), sigmoid(1.5 * h) * std::tanh(d), 1e-6);
}

TEST(OnnxRecurrentTest, RefusesWhatIsNotComputed) {
  OnnxModel m = Layer("GRU", 3);
  Set(RecurrentNodeOf(m), "clip", 1.0f);
  EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, "clipping"));
  m = Layer("LSTM", 4);
  Set(RecurrentNodeOf(m), "input_forget", int64_t{1});
  EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, "coupled input and forget gates"));
  m = Layer("LSTM", 4);
  Set(RecurrentNodeOf(m), "activations", std::vector<std::string>{"Sigmoid", "Tanh", "Relu"});
  EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, "Relu is not supported in place of Tanh"));
  m = Layer("GRU", 3);
  Set(RecurrentNodeOf(m), "activations", std::vector<std::string>{"Sigmoid"});
  EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, "1 activations, not 2"));
  m = Layer("RNN", 1);
  Set(RecurrentNodeOf(m), "activations", std::vector<std::string>{"Affine"});
  EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, "the activation Affine"));
  m = Layer("RNN", 1);
  Set(RecurrentNodeOf(m), "direction", std::string("sideways"));
  EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, "'sideways'"));
}

TEST(OnnxRecurrentTest, RefusesWeightsThatDoNotFit) {
  OnnxModel m = Layer("LSTM", 3);
  EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, "are not those of 4 gates"));
  m = Layer("GRU", 3);
  Set(RecurrentNodeOf(m), "direction", std::string("bidirectional"));
  EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, "1 directions, not 2"));
  m = Layer("LSTM", 4);
  m.Floats("p", {3}, {1, 2, 3});
  for (const char* name : {"", "", "", "", "p"}) RecurrentNodeOf(m).add_input(name);
  EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, "f32[3] have no axis of gates"));
}

}  // namespace
}  // namespace forge
