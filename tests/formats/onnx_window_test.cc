// SPDX-License-Identifier: Apache-2.0
// Convolutions and pools of signals, images and volumes from ONNX, against numbers written out by
// hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/ops/spatial/conv.h"
#include "tests/support/onnx_model.h"
#include "tests/support/status_matchers.h"

namespace forge {
namespace {

using absl::StatusCode;
using Ints = std::vector<int64_t>;
using Numbers = std::vector<double>;

Numbers ResultOf(const OnnxModel& m, const std::vector<ir::HostValue>& inputs) {
  const auto out = ImportAndRun(m, inputs);
  EXPECT_TRUE(out.ok()) << out.status();
  Numbers numbers;
  if (out.ok())
    for (int64_t i = 0; i < (*out)[0].elements(); ++i) numbers.push_back((*out)[0].f64(i));
  return numbers;
}

// The names of what the importer makes of a model.
std::vector<std::string> OpsOf(const OnnxModel& m) {
  const auto module = m.Import();
  EXPECT_TRUE(module.ok()) << module.status();
  std::vector<std::string> names;
  if (module.ok())
    for (const ir::Node& node : (*module)->Find("main")->nodes())
      names.emplace_back(node.op.name());
  return names;
}

TEST(OnnxWindowTest, ConvolvesSignals) {
  OnnxModel m;
  m.Input("x", {"1", "1", "5"}).Floats("w", {1, 1, 2}, {1, 10}).Output("y");
  onnx::NodeProto& node = m.Node("Conv", {"x", "w"}, {"y"});
  Set(node, "strides", Ints{2});
  Set(node, "dilations", Ints{2});
  Set(node, "pads", Ints{1, 2});
  EXPECT_THAT(OpsOf(m), testing::ElementsAre("conv"));
  EXPECT_EQ(ResultOf(m, {Iota({1, 1, 5})}), (Numbers{10, 31, 3}));
}

TEST(OnnxWindowTest, ConvolvesVolumes) {
  OnnxModel m;
  m.Input("x", {"1", "1", "2", "2", "3"}).Floats("w", {1, 1, 2, 1, 2}, {1, 1, 10, 10}).Output("y");
  Set(m.Node("Conv", {"x", "w"}, {"y"}), "pads", Ints{0, 0, 0, 0, 0, 1});
  EXPECT_THAT(OpsOf(m), testing::ElementsAre("conv"));
  // Planes 0 1 2 / 3 4 5 and 6 7 8 / 9 10 11.
  EXPECT_EQ(ResultOf(m, {Iota({1, 1, 2, 2, 3})}), (Numbers{131, 153, 82, 197, 219, 115}));
}

TEST(OnnxWindowTest, PadsBytesOfEachChannelWithTheirZeroPoint) {
  OnnxModel m;
  m.Input("x", {"1", "2", "3"}, onnx::TensorProto::UINT8).Output("y");
  onnx::TensorProto& w = m.Initializer("w", onnx::TensorProto::UINT8, {2, 1, 2});
  for (const int32_t byte : {2, 11, 1, 3}) w.add_int32_data(byte);
  m.Initializer("x0", onnx::TensorProto::UINT8, {}).add_int32_data(3);
  m.Initializer("w0", onnx::TensorProto::UINT8, {}).add_int32_data(1);
  onnx::NodeProto& node = m.Node("ConvInteger", {"x", "w", "x0", "w0"}, {"y"});
  Set(node, "group", int64_t{2});
  Set(node, "pads", Ints{1, 0});
  ir::HostValue x = *ir::HostValue::Zeros(DType::kU8, std::array<int64_t, 3>{1, 2, 3});
  for (int64_t i = 0; i < 6; ++i) x.SetI64(i, i);
  EXPECT_EQ(ResultOf(m, {x}), (Numbers{-30, -23, -12, 0, 2, 4}));
}

TEST(OnnxWindowTest, PadsAlikeAlongEachAxis) {
  OnnxModel m;
  m.Input("x", {"1", "1", "4"}).Floats("w", {1, 1, 2}, {1, 10}).Output("y");
  Set(m.Node("Conv", {"x", "w"}, {"y"}), "auto_pad", std::string("SAME_LOWER"));
  EXPECT_EQ(ResultOf(m, {Iota({1, 1, 4})}), (Numbers{0, 10, 21, 32}));
}

TEST(OnnxWindowTest, PoolsSignalsAndVolumes) {
  OnnxModel signal;
  signal.Input("x", {"1", "1", "5"}).Output("y");
  onnx::NodeProto& largest = signal.Node("MaxPool", {"x"}, {"y"});
  Set(largest, "kernel_shape", Ints{2});
  Set(largest, "strides", Ints{2});
  Set(largest, "ceil_mode", int64_t{1});
  EXPECT_THAT(OpsOf(signal), testing::ElementsAre("pool"));
  EXPECT_EQ(ResultOf(signal, {Iota({1, 1, 5})}), (Numbers{1, 3, 4}));
  OnnxModel volume;
  volume.Input("x", {"1", "1", "2", "2", "2"}).Output("y");
  onnx::NodeProto& mean = volume.Node("AveragePool", {"x"}, {"y"});
  Set(mean, "kernel_shape", Ints{2, 1, 2});
  Set(mean, "pads", Ints{0, 0, 0, 0, 0, 1});
  EXPECT_THAT(OpsOf(volume), testing::ElementsAre("pool"));
  EXPECT_EQ(ResultOf(volume, {Iota({1, 1, 2, 2, 2})}), (Numbers{2.5, 3, 4.5, 5}));
}

TEST(OnnxWindowTest, SpreadsVolumes) {
  OnnxModel m;
  m.Input("x", {"1", "1", "1", "1", "2"}).Floats("w", {1, 1, 2, 1, 3}, {1, 2, 3, 4, 5, 6});
  Set(m.Output("y").Node("ConvTranspose", {"x", "w"}, {"y"}), "strides", Ints{1, 1, 2});
  EXPECT_EQ(ResultOf(m, {FloatTensor({1, 1, 1, 1, 2}, {1, 10})}),
            (Numbers{1, 2, 13, 20, 30, 4, 5, 46, 50, 60}));
}

// A box of 4 x 2 elements, and one outside of the image.
TEST(OnnxWindowTest, TakesTheGreatestOfPartsOfBoxes) {
  OnnxModel m;
  m.Input("x", {"1", "1", "4", "4"}).Output("y");
  m.Floats("boxes", {2, 5}, {0, 0, 0, 3, 1, 0, 6, 6, 7, 7});
  Set(m.Node("MaxRoiPool", {"x", "boxes"}, {"y"}), "pooled_shape", Ints{2, 2});
  EXPECT_EQ(ResultOf(m, {Iota({1, 1, 4, 4})}), (Numbers{1, 3, 5, 7, 0, 0, 0, 0}));
}

TEST(OnnxWindowTest, RefusesOtherNumbersOfAxes) {
  OnnxModel four;
  four.Input("x", {"1", "1", "2", "2", "2", "2"}).Output("y");
  Set(four.Node("MaxPool", {"x"}, {"y"}), "kernel_shape", Ints{1, 1, 1, 1});
  EXPECT_THAT(four.Import(), Fails(StatusCode::kDataLoss, "has 4 spatial axes"));
  OnnxModel uneven;
  uneven.Input("x", {"1", "1", "5"}).Floats("w", {1, 1, 1, 2}, {1, 10}).Output("y");
  uneven.Node("Conv", {"x", "w"}, {"y"});
  EXPECT_THAT(uneven.Import(), Fails(StatusCode::kDataLoss, "weights f32[1, 1, 1, 2]"));
  OnnxModel list;
  list.Input("x", {"1", "1", "5"}).Floats("w", {1, 1, 2}, {1, 10}).Output("y");
  Set(list.Node("Conv", {"x", "w"}, {"y"}), "strides", Ints{1, 1});
  EXPECT_THAT(list.Import(), Fails(StatusCode::kDataLoss, "attribute 'strides' is [1, 1]"));
}

}  // namespace
}  // namespace forge
