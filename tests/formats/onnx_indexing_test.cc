// SPDX-License-Identifier: Apache-2.0
// Operators that write or read at computed places, against numbers written out by hand.
#include <gtest/gtest.h>

#include "tests/support/ir_values.h"
#include "tests/support/onnx_model.h"
#include "tests/support/status_matchers.h"

namespace forge {
namespace {

using absl::StatusCode;

std::vector<double> ElementsOf(const OnnxModel& m, const std::vector<ir::HostValue>& inputs,
                               size_t result = 0) {
  const auto out = ImportAndRun(m, inputs);
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? Numbers((*out)[result]) : std::vector<double>();
}

using Reals = std::vector<double>;
using Whole = std::vector<int64_t>;

// y of [0, 1, 2] with 10 and 20 scattered to 2.
OnnxModel TwoUpdatesOfOne(int64_t opset, const std::string& op, const std::string& reduction) {
  OnnxModel m(opset);
  m.Input("x", {"3"}).Ints("i", {2}, {2, -1}).Floats("u", {2}, {10, 20}).Output("y");
  onnx::NodeProto& node = m.Node(op, {"x", "i", "u"}, {"y"});
  if (!reduction.empty()) Set(node, "reduction", reduction);
  return m;
}

TEST(OnnxScatterTest, ReducesAsItsVersionKnows) {
  const auto y = [](int64_t opset, const std::string& op, const std::string& reduction) {
    return ElementsOf(TwoUpdatesOfOne(opset, op, reduction), {Iota({3})});
  };
  EXPECT_EQ(y(9, "Scatter", ""), (Reals{0, 1, 20}));
  EXPECT_EQ(y(11, "ScatterElements", ""), (Reals{0, 1, 20}));
  EXPECT_EQ(y(16, "ScatterElements", "add"), (Reals{0, 1, 32}));
  EXPECT_EQ(y(16, "ScatterElements", "mul"), (Reals{0, 1, 400}));
  EXPECT_EQ(y(18, "ScatterElements", "max"), (Reals{0, 1, 20}));
  EXPECT_EQ(y(18, "ScatterElements", "min"), (Reals{0, 1, 2}));
  EXPECT_THAT(TwoUpdatesOfOne(16, "ScatterElements", "max").Import(),
              Fails(StatusCode::kDataLoss, "attribute 'reduction' is 'max'"));
  EXPECT_THAT(TwoUpdatesOfOne(11, "ScatterElements", "add").Import(),
              Fails(StatusCode::kDataLoss, "reduction"));
}

TEST(OnnxScatterTest, RefusesAStatedIndexOutside) {
  OnnxModel m;
  m.Input("x", {"2", "3"}).Ints("i", {1, 1}, {3}).Floats("u", {1, 1}, {1}).Output("y");
  Set(m.Node("ScatterElements", {"x", "i", "u"}, {"y"}), "axis", int64_t{1});
  EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, "index 3 is outside"));
}

TEST(OnnxScatterTest, WritesSlices) {
  OnnxModel m(16);
  m.Input("x", {"2", "2"}).Ints("i", {2, 1}, {-1, 1}).Floats("u", {2, 2}, {1, 2, 3, 4});
  m.Output("y");
  Set(m.Node("ScatterND", {"x", "i", "u"}, {"y"}), "reduction", std::string("add"));
  EXPECT_EQ(ElementsOf(m, {Iota({2, 2})}), (Reals{0, 1, 6, 9}));
}

TEST(OnnxMaxUnpoolTest, CountsThroughTheWholeResult) {
  OnnxModel m(11);
  m.Input("x", {"1", "2", "1"}).Ints("i", {1, 2, 1}, {5, 1}).Output("y");
  Set(m.Node("MaxUnpool", {"x", "i"}, {"y"}), "kernel_shape", Whole{3});
  EXPECT_EQ(ElementsOf(m, {FloatTensor({1, 2, 1}, {7, 8})}), (Reals{0, 8, 0, 0, 0, 7}));
  OnnxModel larger(11);
  larger.Input("x", {"1", "1", "1"}).Ints("i", {1, 1, 1}, {3}).Ints("s", {3}, {1, 1, 4});
  larger.Output("y");
  Set(larger.Node("MaxUnpool", {"x", "i", "s"}, {"y"}), "kernel_shape", Whole{2});
  EXPECT_EQ(ElementsOf(larger, {FloatTensor({1, 1, 1}, {7})}), (Reals{0, 0, 0, 7}));
}

TEST(OnnxMaxPoolTest, IndicesCountThroughTheWholeOperand) {
  for (const int64_t column_major : {0, 1}) {
    OnnxModel m(12);
    m.Input("x", {"1", "2", "2", "3"}).Output("y").Output("i");
    onnx::NodeProto& node = m.Node("MaxPool", {"x"}, {"y", "i"});
    Set(node, "kernel_shape", Whole{2, 3});
    Set(node, "storage_order", column_major);
    const ir::HostValue x = FloatTensor({1, 2, 2, 3}, {0, 9, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1});
    EXPECT_EQ(ElementsOf(m, {x}), (Reals{9, 8}));
    EXPECT_EQ(ElementsOf(m, {x}, 1), column_major ? (Reals{2, 7}) : (Reals{1, 9}));
  }
}

TEST(OnnxLpPoolTest, SumsPowers) {
  OnnxModel m(18);
  m.Input("x", {"1", "1", "3"}).Output("y");
  onnx::NodeProto& node = m.Node("LpPool", {"x"}, {"y"});
  Set(node, "kernel_shape", Whole{2});
  Set(node, "pads", Whole{1, 0});
  EXPECT_EQ(ElementsOf(m, {FloatTensor({1, 1, 3}, {-3, 4, 0})}), (Reals{3, 5, 4}));
}

TEST(OnnxCompressTest, TakesWhatAConstantSelects) {
  const auto model = [](const std::vector<int64_t>& condition, bool along) {
    OnnxModel m(11);
    m.Input("x", {"2", "3"}).Output("y");
    onnx::TensorProto& c =
        m.Initializer("c", onnx::TensorProto::BOOL, {static_cast<int64_t>(condition.size())});
    for (int64_t v : condition) c.add_int32_data(static_cast<int32_t>(v));
    onnx::NodeProto& node = m.Node("Compress", {"x", "c"}, {"y"});
    if (along) Set(node, "axis", int64_t{-1});
    return m;
  };
  EXPECT_EQ(ElementsOf(model({0, 1, 1}, true), {Iota({2, 3})}), (Reals{1, 2, 4, 5}));
  EXPECT_EQ(ElementsOf(model({0, 1, 0, 1}, false), {Iota({2, 3})}), (Reals{1, 3}));
  EXPECT_THAT(model({0, 1, 1, 1}, true).Import(),
              Fails(StatusCode::kDataLoss, "element 3 of the condition is beyond 3"));
}

TEST(OnnxGridSampleTest, KnowsTheWordsOfItsVersion) {
  const auto model = [](int64_t opset, const std::string& mode) {
    OnnxModel m(opset);
    m.Input("x", {"1", "1", "2", "2"}).Floats("g", {1, 1, 2, 2}, {-1, -1, 0, 0}).Output("y");
    onnx::NodeProto& node = m.Node("GridSample", {"x", "g"}, {"y"});
    Set(node, "mode", mode);
    Set(node, "align_corners", int64_t{1});
    return m;
  };
  EXPECT_EQ(ElementsOf(model(16, "bilinear"), {Iota({1, 1, 2, 2})}), (Reals{0, 1.5}));
  EXPECT_EQ(ElementsOf(model(20, "linear"), {Iota({1, 1, 2, 2})}), (Reals{0, 1.5}));
  EXPECT_EQ(ElementsOf(model(20, "nearest"), {Iota({1, 1, 2, 2})}), (Reals{0, 0}));
  EXPECT_THAT(model(20, "bilinear").Import(),
              Fails(StatusCode::kDataLoss, "attribute 'mode' is 'bilinear'"));
}

TEST(OnnxAffineGridTest, PlacesElementsByTheirSize) {
  OnnxModel m(20);
  m.Input("t", {"1", "2", "3"}).Ints("s", {4}, {1, 1, 1, 2}).Output("y");
  m.Node("AffineGrid", {"t", "s"}, {"y"});
  EXPECT_EQ(ElementsOf(m, {FloatTensor({1, 2, 3}, {2, 0, 1, 0, 1, 3})}), (Reals{0, 3, 2, 3}));
}

TEST(OnnxRoiAlignTest, MovesBoxesFromVersion16On) {
  const auto model = [](int64_t opset, int64_t ratio) {
    OnnxModel m(opset);
    m.Input("x", {"1", "1", "3", "3"}).Floats("r", {1, 4}, {1, 1, 2, 2}).Ints("b", {1}, {0});
    m.Output("y");
    Set(m.Node("RoiAlign", {"x", "r", "b"}, {"y"}), "sampling_ratio", ratio);
    return m;
  };
  EXPECT_EQ(ElementsOf(model(10, 1), {Iota({1, 1, 3, 3})}), (Reals{6}));
  EXPECT_EQ(ElementsOf(model(16, 1), {Iota({1, 1, 3, 3})}), (Reals{4}));
}

// The numbers are onnxruntime's.
TEST(OnnxRoiAlignTest, BoxesTellTheirPoints) {
  OnnxModel m(16);
  m.Input("x", {"1", "1", "3", "3"}).Ints("b", {2}, {0, 0}).Output("y");
  m.Floats("r", {2, 4}, {0, 0, 1, 1, 0, 0, 3, 2});
  Set(m.Node("RoiAlign", {"x", "r", "b"}, {"y"}), "mode", std::string_view("avg"));
  // One point in the second box would be 0.
  const ir::HostValue x = FloatTensor({1, 1, 3, 3}, {6, 0, 6, 0, 0, 0, 0, 0, 18});
  EXPECT_EQ(ElementsOf(m, {x}), (Reals{6, 2}));
}

TEST(OnnxCol2ImTest, AddsWhatOverlaps) {
  OnnxModel m(18);
  m.Input("x", {"1", "2", "2"}).Ints("s", {2}, {1, 3}).Ints("b", {2}, {1, 2}).Output("y");
  m.Node("Col2Im", {"x", "s", "b"}, {"y"});
  EXPECT_EQ(ElementsOf(m, {FloatTensor({1, 2, 2}, {1, 2, 10, 20})}), (Reals{1, 12, 20}));
}

}  // namespace
}  // namespace forge
