// SPDX-License-Identifier: Apache-2.0
// Gathers, ranges, norms, resizes and transposed convolutions from ONNX, against numbers written
// out by hand.
#include <gtest/gtest.h>

#include "ir/ops/movement/gather.h"
#include "tests/support/onnx_model.h"
#include "tests/support/status_matchers.h"

namespace forge {
namespace {

using absl::StatusCode;

std::vector<double> RunModel(const OnnxModel& m, const std::vector<ir::HostValue>& inputs,
                             size_t result = 0) {
  const auto out = ImportAndRun(m, inputs);
  EXPECT_TRUE(out.ok()) << out.status();
  std::vector<double> numbers;
  if (out.ok())
    for (int64_t i = 0; i < (*out)[result].elements(); ++i)
      numbers.push_back((*out)[result].f64(i));
  return numbers;
}

using Doubles = std::vector<double>;

TEST(OnnxGatherTest, SelectsAlongAnyAxis) {
  OnnxModel m;
  m.Input("x", {"2", "3"}).Ints("i", {2}, {-1, 0}).Output("y");
  Set(m.Node("Gather", {"x", "i"}, {"y"}), "axis", int64_t{1});
  EXPECT_EQ(RunModel(m, {Iota({2, 3})}), (Doubles{2, 0, 5, 3}));
}

TEST(OnnxGatherTest, RefusesAStatedIndexOutside) {
  OnnxModel m;
  m.Input("x", {"2", "3"}).Ints("i", {1}, {-3}).Output("y");
  m.Node("Gather", {"x", "i"}, {"y"});
  EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, "index -3 is outside"));
}

TEST(OnnxGatherTest, GivesZeroForAComputedIndexOutside) {
  OnnxModel m;
  m.Input("x", {"2"}).Input("i", {"3"}, onnx::TensorProto::INT64).Output("y");
  m.Node("Gather", {"x", "i"}, {"y"});
  EXPECT_EQ(RunModel(m, {FloatTensor({2}, {5, 6}), IntTensor({3}, {1, 2, -2})}),
            (Doubles{6, 0, 5}));
}

TEST(OnnxGatherTest, GatherElementsAndGatherNd) {
  OnnxModel m;
  m.Input("x", {"2", "2"}).Ints("i", {1, 2}, {1, 0}).Output("y").Output("z");
  m.Node("GatherElements", {"x", "i"}, {"y"});
  m.Node("GatherND", {"x", "i"}, {"z"});
  EXPECT_EQ(RunModel(m, {Iota({2, 2})}), (Doubles{2, 1}));
  EXPECT_EQ(RunModel(m, {Iota({2, 2})}, 1), (Doubles{2}));
}

TEST(OnnxRangeTest, CountsUpAndDown) {
  OnnxModel m;
  m.Ints("a", {}, {7}).Ints("b", {}, {0}).Ints("d", {}, {-3}).Output("y");
  m.Node("Range", {"a", "b", "d"}, {"y"});
  EXPECT_EQ(RunModel(m, {}), (Doubles{7, 4, 1}));
}

TEST(OnnxRangeTest, IsOverDimensions) {
  OnnxModel m;
  m.Input("x", {"n"}).Ints("zero", {}, {0}).Ints("one", {}, {1}).Output("y");
  m.Node("Shape", {"x"}, {"shape"});
  m.Node("Squeeze", {"shape"}, {"n"});
  m.Node("Range", {"zero", "n", "one"}, {"y"});
  FORGE_ASSERT_OK_AND_ASSIGN(auto module, m.Import());
  const ir::Function& f = *module->Find("main");
  EXPECT_EQ(f.type(f.results()[0].value).ToText(), "i64[n]");
}

TEST(OnnxRangeTest, TakesStatedFloats) {
  OnnxModel m;
  m.Floats("a", {}, {1}).Floats("b", {}, {2}).Floats("d", {}, {0.25}).Output("y");
  m.Node("Range", {"a", "b", "d"}, {"y"});
  EXPECT_EQ(RunModel(m, {}), (Doubles{1, 1.25, 1.5, 1.75}));
}

TEST(OnnxLayerNormTest, GivesItsStatisticsWhereAsked) {
  OnnxModel m;
  m.Input("x", {"1", "2"}).Floats("g", {2}, {2, 2}).Floats("b", {2}, {1, 1});
  m.Output("y").Output("mean").Output("inverse");
  Set(m.Node("LayerNormalization", {"x", "g", "b"}, {"y", "mean", "inverse"}), "epsilon", 0.0f);
  const ir::HostValue x = FloatTensor({1, 2}, {1, 5});
  EXPECT_EQ(RunModel(m, {x}), (Doubles{-1, 3}));
  EXPECT_EQ(RunModel(m, {x}, 1), (Doubles{3}));
  EXPECT_EQ(RunModel(m, {x}, 2), (Doubles{0.5}));
}

TEST(OnnxRmsNormTest, KeepsTheMean) {
  OnnxModel m(23);
  m.Input("x", {"1", "2"}).Floats("g", {2}, {5, 10}).Output("y");
  Set(m.Node("RMSNormalization", {"x", "g"}, {"y"}), "epsilon", 0.0f);
  EXPECT_EQ(RunModel(m, {FloatTensor({1, 2}, {1, 7})}), (Doubles{1, 14}));
}

TEST(OnnxInstanceNormTest, NormalisesEachChannel) {
  OnnxModel m(6);
  m.Input("x", {"1", "2", "2"}).Floats("g", {2}, {2, 3}).Floats("b", {2}, {1, -1}).Output("y");
  Set(m.Node("InstanceNormalization", {"x", "g", "b"}, {"y"}), "epsilon", 0.0f);
  EXPECT_EQ(RunModel(m, {FloatTensor({1, 2, 2}, {1, 5, 3, 1})}), (Doubles{-1, 3, 2, -4}));
}

// Four channels in two groups; gamma and beta for each channel, until version 21 for each group.
TEST(OnnxGroupNormTest, NormalisesEachGroup) {
  const ir::HostValue x = FloatTensor({1, 4, 1}, {1, 5, 3, 1});
  for (const bool by_group : {true, false}) {
    OnnxModel m(by_group ? 18 : 21);
    m.Input("x", {"1", "4", "1"}).Output("y");
    if (by_group)
      m.Floats("g", {2}, {2, 3}).Floats("b", {2}, {1, -1});
    else
      m.Floats("g", {4}, {2, 2, 3, 3}).Floats("b", {4}, {1, 1, -1, -1});
    auto& node = m.Node("GroupNormalization", {"x", "g", "b"}, {"y"});
    Set(node, "epsilon", 0.0f);
    Set(node, "num_groups", int64_t{2});
    EXPECT_EQ(RunModel(m, {x}), (Doubles{-1, 3, 2, -4})) << by_group;
  }
}

OnnxModel Resizing(std::vector<float> scales, const std::vector<std::string>& shape) {
  OnnxModel m;
  const auto rank = static_cast<int64_t>(scales.size());
  m.Input("x", shape).Floats("scales", {rank}, std::move(scales)).Output("y");
  m.Node("Resize", {"x", "", "scales"}, {"y"});
  return m;
}

TEST(OnnxResizeTest, RepeatsTheNearest) {
  OnnxModel m = Resizing({1, 2}, {"1", "2"});
  Set(*m.graph().mutable_node(0), "coordinate_transformation_mode", "asymmetric");
  Set(*m.graph().mutable_node(0), "nearest_mode", "floor");
  EXPECT_EQ(RunModel(m, {FloatTensor({1, 2}, {5, 6})}), (Doubles{5, 5, 6, 6}));
}

TEST(OnnxResizeTest, InterpolatesHalfPixels) {
  OnnxModel m = Resizing({2}, {"2"});
  Set(*m.graph().mutable_node(0), "mode", "linear");
  EXPECT_EQ(RunModel(m, {FloatTensor({2}, {0, 4})}), (Doubles{0, 1, 3, 4}));
}

TEST(OnnxResizeTest, TakesSizesFromShapes) {
  OnnxModel m;
  m.Input("x", {"n"}).Input("like", {"m"}).Output("y");
  m.Node("Shape", {"like"}, {"size"});
  onnx::NodeProto& node = m.Node("Resize", {"x", "", "", "size"}, {"y"});
  Set(node, "mode", "linear");
  Set(node, "coordinate_transformation_mode", "align_corners");
  EXPECT_EQ(RunModel(m, {FloatTensor({2}, {0, 6}), Iota({4})}), (Doubles{0, 2, 4, 6}));
}

TEST(OnnxResizeTest, ReadsThirdsAsThirds) {
  OnnxModel m = Resizing({1.0f / 3}, {"9"});
  Set(*m.graph().mutable_node(0), "coordinate_transformation_mode", "asymmetric");
  EXPECT_EQ(RunModel(m, {Iota({9})}), (Doubles{0, 3, 6}));
}

// The triangle is as wide as two elements of the result.
TEST(OnnxResizeTest, SmoothsWhatItShrinks) {
  OnnxModel m(18);
  m.Input("x", {"4"}).Floats("scales", {1}, {0.5}).Output("y");
  onnx::NodeProto& node = m.Node("Resize", {"x", "", "scales"}, {"y"});
  Set(node, "antialias", int64_t{1});
  Set(node, "mode", "linear");
  // Weights 1/8, 3/8, 3/8, 1/8; the outermost element continues.
  EXPECT_EQ(RunModel(m, {FloatTensor({4}, {0, 8, 16, 24})}), (Doubles{5, 19}));
}

TEST(OnnxResizeTest, RefusesWhatItDoesNotDo) {
  OnnxModel m = Resizing({2}, {"2"});
  Set(*m.graph().mutable_node(0), "coordinate_transformation_mode", "tf_crop_and_resize");
  EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, "its region is not known"));
  OnnxModel smooth(18);
  smooth.Input("x", {"n"}).Floats("scales", {1}, {0.5}).Output("y");
  onnx::NodeProto& node = smooth.Node("Resize", {"x", "", "scales"}, {"y"});
  Set(node, "antialias", int64_t{1});
  Set(node, "mode", "linear");
  EXPECT_THAT(smooth.Import(), Fails(StatusCode::kDataLoss, "its weights for"));
  EXPECT_THAT(Resizing({-1}, {"2"}).Import(), Fails(StatusCode::kDataLoss, "scale -1"));
  EXPECT_THAT(Resizing({1, 2}, {"2"}).Import(), Fails(StatusCode::kDataLoss, "2 scales"));
}

TEST(OnnxConvTransposeTest, SpreadsASignal) {
  OnnxModel m;
  m.Input("x", {"1", "1", "2"}).Floats("w", {1, 1, 3}, {1, 10, 100}).Output("y");
  Set(m.Node("ConvTranspose", {"x", "w"}, {"y"}), "strides", std::vector<int64_t>{2});
  EXPECT_EQ(RunModel(m, {FloatTensor({1, 1, 2}, {1, 2})}), (Doubles{1, 10, 102, 20, 200}));
}

TEST(OnnxConvTransposeTest, KeepsToAnOutputShape) {
  OnnxModel m;
  m.Input("x", {"1", "1", "2"}).Floats("w", {1, 1, 3}, {1, 10, 100}).Output("y");
  onnx::NodeProto& node = m.Node("ConvTranspose", {"x", "w"}, {"y"});
  Set(node, "strides", std::vector<int64_t>{2});
  Set(node, "output_shape", std::vector<int64_t>{4});
  EXPECT_EQ(RunModel(m, {FloatTensor({1, 1, 2}, {1, 2})}), (Doubles{10, 102, 20, 200}));
}

}  // namespace
}  // namespace forge
