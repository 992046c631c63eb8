// SPDX-License-Identifier: Apache-2.0
// Operators that become composites, where onnxruntime does not judge them: old versions, operands
// that are computed, and refusals.
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
using testing::Pointwise;

constexpr int32_t kInt64 = onnx::TensorProto::INT64;

// The numbers of every result of a model whose first operand is "x".
std::vector<std::vector<double>> ResultsOf(const OnnxModel& m,
                                           const std::vector<ir::HostValue>& in) {
  const auto out = ImportAndRun(m, in);
  EXPECT_TRUE(out.ok()) << out.status();
  std::vector<std::vector<double>> all;
  if (!out.ok()) return all;
  for (const ir::HostValue& v : *out) {
    all.emplace_back();
    for (int64_t i = 0; i < v.elements(); ++i) all.back().push_back(v.f64(i));
  }
  return all;
}

auto Near(const std::vector<double>& v) { return Pointwise(testing::DoubleNear(1e-6), v); }

TEST(OnnxCompositesTest, OldPReluHasASlopeForEachChannel) {
  OnnxModel m(6);
  m.Input("x", {"1", "2", "2"}).Output("y").Floats("s", {2}, {10, 100});
  m.Node("PRelu", {"x", "s"}, {"y"});
  EXPECT_THAT(ResultsOf(m, {FloatTensor({1, 2, 2}, {-1, 1, -2, 2})})[0],
              ElementsAre(-10, 1, -200, 2));
}

TEST(OnnxCompositesTest, BatchNormalizationInTrainingUpdatesItsStatistics) {
  OnnxModel m(15);
  m.Input("x", {"4", "1"}).Output("y").Output("mean").Output("variance");
  m.Floats("one", {1}, {1}).Floats("zero", {1}, {0}).Floats("m", {1}, {8}).Floats("v", {1}, {4});
  onnx::NodeProto& node =
      m.Node("BatchNormalization", {"x", "one", "zero", "m", "v"}, {"y", "mean", "variance"});
  Set(node, "training_mode", int64_t{1});
  Set(node, "momentum", 0.75f);
  Set(node, "epsilon", 0.0f);
  const auto out = ResultsOf(m, {FloatTensor({4, 1}, {-1, 1, 3, 5})});
  ASSERT_EQ(out.size(), 3u);
  const double step = 1 / std::sqrt(5.0);
  EXPECT_THAT(out[0], Near({-3 * step, -step, step, 3 * step}));
  EXPECT_THAT(out[1], ElementsAre(6.5));
  EXPECT_THAT(out[2], ElementsAre(4.25));
}

OnnxModel SplitInTwo(int64_t opset, const std::vector<int64_t>& sizes) {
  OnnxModel m(opset);
  m.Input("x", {"5"}).Output("a").Output("b");
  if (!sizes.empty()) m.Ints("sizes", {static_cast<int64_t>(sizes.size())}, sizes);
  m.Node("Split",
         sizes.empty() ? std::vector<std::string>{"x"} : std::vector<std::string>{"x", "sizes"},
         {"a", "b"});
  return m;
}

TEST(OnnxCompositesTest, SplitGivesTheLastPartWhatIsLeft) {
  const auto even = ResultsOf(SplitInTwo(18, {}), {Iota({5})});
  EXPECT_THAT(even[0], ElementsAre(0, 1, 2));
  EXPECT_THAT(even[1], ElementsAre(3, 4));
  EXPECT_THAT(ResultsOf(SplitInTwo(13, {1, 4}), {Iota({5})})[1], ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(SplitInTwo(13, {1, 3}).Import(),
              Fails(StatusCode::kDataLoss, "its parts have 4 elements of 5"));
  EXPECT_THAT(SplitInTwo(13, {5}).Import(), Fails(StatusCode::kDataLoss, "1 sizes for 2 results"));
  EXPECT_THAT(SplitInTwo(13, {6, -1}).Import(),
              Fails(StatusCode::kDataLoss, "a part of -1 elements"));
}

TEST(OnnxCompositesTest, TileTakesRepeatsThatAreComputed) {
  OnnxModel m(13);
  m.Input("x", {"1", "2"}).Input("r", {"2"}, kInt64).Output("y");
  m.Node("Tile", {"x", "r"}, {"y"});
  EXPECT_THAT(ResultsOf(m, {Iota({1, 2}), IntTensor({2}, {2, 2})})[0],
              ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
  OnnxModel few(13);
  few.Input("x", {"1", "2"}).Output("y").Ints("r", {1}, {2});
  few.Node("Tile", {"x", "r"}, {"y"});
  EXPECT_THAT(few.Import(), Fails(StatusCode::kDataLoss, "1 repeats for f32[1, 2]"));
}

TEST(OnnxCompositesTest, OneHotTakesIndicesOfFloatsAndADepthThatIsComputed) {
  OnnxModel m(11);
  m.Input("x", {"3"}).Input("d", {}, kInt64).Output("y").Floats("values", {2}, {5, 7});
  m.Node("OneHot", {"x", "d", "values"}, {"y"});
  EXPECT_THAT(ResultsOf(m, {FloatTensor({3}, {1, -1, 9}), IntTensor({}, {2})})[0],
              ElementsAre(5, 7, 5, 7, 5, 5));
}

TEST(OnnxCompositesTest, TriluTakesADiagonalThatIsComputed) {
  OnnxModel m(14);
  m.Input("x", {"2", "2"}).Input("k", {}, kInt64).Output("y");
  m.Node("Trilu", {"x", "k"}, {"y"});
  EXPECT_THAT(ResultsOf(m, {FloatTensor({2, 2}, {1, 2, 3, 4}), IntTensor({}, {1})})[0],
              ElementsAre(0, 2, 0, 0));
}

TEST(OnnxCompositesTest, ConstantOfShapeTakesAShapeThatIsComputed) {
  OnnxModel m(9);
  m.Input("s", {"2"}, kInt64).Output("y");
  m.Node("ConstantOfShape", {"s"}, {"y"});
  EXPECT_THAT(ResultsOf(m, {IntTensor({2}, {1, 3})})[0], ElementsAre(0, 0, 0));
}

TEST(OnnxCompositesTest, LossesGiveLogarithmsOfProbabilitiesToo) {
  OnnxModel m(13);
  m.Input("x", {"1", "2"}).Output("loss").Output("log_p").Ints("t", {1}, {1});
  Set(m.Node("SoftmaxCrossEntropyLoss", {"x", "t"}, {"loss", "log_p"}), "reduction", "sum");
  const auto out = ResultsOf(m, {FloatTensor({1, 2}, {0, std::log(3.0f)})});
  EXPECT_NEAR(out[0][0], std::log(4.0 / 3), 1e-6);
  EXPECT_THAT(out[1], Near({std::log(0.25), std::log(0.75)}));
}

TEST(OnnxCompositesTest, LpNormalizationLeavesZeros) {
  OnnxModel m(1);
  m.Input("x", {"2", "2"}).Output("y");
  m.Node("LpNormalization", {"x"}, {"y"});
  EXPECT_THAT(ResultsOf(m, {FloatTensor({2, 2}, {0, 0, 3, 4})})[0], Near({0, 0, 0.6, 0.8}));
}

TEST(OnnxCompositesTest, HardmaxTakesTheFirstOfEqualElements) {
  OnnxModel m(13);
  m.Input("x", {"2", "3"}).Output("y");
  m.Node("Hardmax", {"x"}, {"y"});
  EXPECT_THAT(ResultsOf(m, {FloatTensor({2, 3}, {1, 2, 2, 3, 1, 3})})[0],
              ElementsAre(0, 1, 0, 1, 0, 0));
}

TEST(OnnxCompositesTest, MatMulOfIntegersWraps) {
  OnnxModel m(13);
  m.Input("x", {"2"}, kInt64).Input("w", {"2", "1"}, kInt64).Output("y");
  m.Node("MatMul", {"x", "w"}, {"y"});
  const int64_t large = int64_t{1} << 62;
  FORGE_ASSERT_OK_AND_ASSIGN(
      const auto out, ImportAndRun(m, {IntTensor({2}, {3, large}), IntTensor({2, 1}, {large, 4})}));
  EXPECT_EQ(out[0].i64(0), -large);
}

TEST(OnnxCompositesTest, WhatIsMalformedIsRefused) {
  const auto one = [](std::string_view op, int64_t opset, const std::vector<std::string>& shape) {
    OnnxModel m(opset);
    m.Input("x", shape).Output("y");
    m.Node(op, {"x"}, {"y"});
    return m;
  };
  EXPECT_THAT(one("GlobalLpPool", 2, {"2", "3"}).Import(),
              Fails(StatusCode::kDataLoss, "has no spatial axes"));
  EXPECT_THAT(one("EyeLike", 9, {"2"}).Import(), Fails(StatusCode::kDataLoss, "is not a matrix"));
  EXPECT_THAT(one("LRN", 13, {"2"}).Import(), Fails(StatusCode::kDataLoss, "rank"));
  OnnxModel m = one("DepthToSpace", 13, {"1", "6", "1", "1"});
  Set(*m.graph().mutable_node(0), "blocksize", int64_t{2});
  EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, "6 channels are no blocks of 2 x 2"));
}

TEST(OnnxCompositesTest, AnAttributeIsASmallNumber) {
  OnnxModel m(17);
  m.Input("x", {"2", "3"}).Input("lengths", {"3"}, kInt64).Output("y");
  Set(m.Node("ReverseSequence", {"x", "lengths"}, {"y"}), "batch_axis", INT64_MAX);
  EXPECT_THAT(m.Import(),
              Fails(StatusCode::kDataLoss, "attribute 'batch_axis' is 9223372036854775807"));
}

TEST(OnnxCompositesTest, OperandsOfLinearAttentionFitItsQueries) {
  const auto model = [](const std::vector<std::string>& v, const std::vector<std::string>& decay) {
    OnnxModel m(27);
    m.Input("q", {"1", "3", "8"}).Input("k", {"1", "3", "8"}).Input("v", v);
    m.Input("decay", decay).Input("beta", {"1", "3", "2"});
    m.Output("y").Output("state");
    onnx::NodeProto& node =
        m.Node("LinearAttention", {"q", "k", "v", "", "decay", "beta"}, {"y", "state"});
    Set(node, "q_num_heads", int64_t{2});
    Set(node, "kv_num_heads", int64_t{2});
    return m;
  };
  EXPECT_TRUE(model({"1", "3", "8"}, {"1", "3", "8"}).Import().ok());
  EXPECT_THAT(model({"1", "n", "8"}, {"1", "3", "8"}).Import(),
              Fails(StatusCode::kDataLoss, "input 2 has n tokens, queries have 3"));
  EXPECT_THAT(model({"1", "3", "8"}, {"1", "3", "3"}).Import(),
              Fails(StatusCode::kDataLoss, "LinearAttention"));
}

TEST(OnnxCompositesTest, TileRepeatedOneAxisAtFirst) {
  OnnxModel m(5);
  m.Input("x", {"2", "1"}).Ints("times", {}, {3}).Ints("axis", {}, {1}).Output("y");
  m.Node("Tile", {"x", "times", "axis"}, {"y"});
  const auto out = ImportAndRun(m, {FloatTensor({2, 1}, {4, 5})});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].dim(1), 3);
  EXPECT_EQ((*out)[0].f64(3), 5);
}

TEST(OnnxCompositesTest, CategoriesAndLabelsAreMappedByTheirTypes) {
  for (const char* op : {"CategoryMapper", "LabelEncoder"}) {
    OnnxModel m;
    onnx::OperatorSetIdProto& set = *m.proto().add_opset_import();
    set.set_domain("ai.onnx.ml");
    set.set_version(1);
    m.Input("x", {"3"}, onnx::TensorProto::INT64).Output("y");
    const bool is_mapper = std::string_view(op) == "CategoryMapper";
    for (const auto& [from, to] : {std::pair("x", "words"), std::pair("words", "y")}) {
      onnx::NodeProto& node = m.Node(op, {from}, {to});
      node.set_domain("ai.onnx.ml");
      onnx::AttributeProto& words = Attribute(node, is_mapper ? "cats_strings" : "classes_strings",
                                              onnx::AttributeProto::STRINGS);
      for (const char* word : {"a", "b"}) words.add_strings(word);
      if (is_mapper) Set(node, "cats_int64s", std::vector<int64_t>{0, 1});
    }
    const auto out = ImportAndRun(m, {IntTensor({3}, {1, 0, 9})});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[0].i64(0), 1);
    EXPECT_EQ((*out)[0].i64(1), 0);
    EXPECT_EQ((*out)[0].i64(2), -1);
  }
}

// A node of ai.onnx.ml.
onnx::NodeProto& LearnedNode(OnnxModel& m, std::string_view op) {
  onnx::OperatorSetIdProto& set = *m.proto().add_opset_import();
  set.set_domain("ai.onnx.ml");
  set.set_version(5);
  onnx::NodeProto& node = m.Output("y").Node(op, {"x"}, {"y"});
  node.set_domain("ai.onnx.ml");
  return node;
}

TEST(OnnxCompositesTest, ModesOfTreesAreSmallNumbers) {
  OnnxModel m;
  m.Input("x", {"1", "2"});
  onnx::NodeProto& node = LearnedNode(m, "TreeEnsemble");
  onnx::TensorProto& modes =
      *Attribute(node, "nodes_modes", onnx::AttributeProto::TENSOR).mutable_t();
  modes.set_data_type(onnx::TensorProto::FLOAT);
  modes.add_dims(1);
  modes.add_float_data(std::nanf(""));
  EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, "nodes_modes has nan"));
}

TEST(OnnxCompositesTest, LabelsAreNumbersWhereKeysAre) {
  OnnxModel m;
  m.Input("x", {"2"}, onnx::TensorProto::STRING);
  onnx::NodeProto& node = LearnedNode(m, "LabelEncoder");
  for (const char* name : {"keys_int64s", "values_int64s"})
    Attribute(node, name, onnx::AttributeProto::INTS).add_ints(1);
  EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, "labels of string are not supported"));
}

// Each made a number or a list of the type of its operand.
TEST(OnnxCompositesTest, StringsAreNoNumbers) {
  OnnxModel imputer;
  imputer.Input("x", {"2"}, onnx::TensorProto::STRING);
  onnx::NodeProto& node = LearnedNode(imputer, "Imputer");
  Attribute(node, "imputed_value_int64s", onnx::AttributeProto::INTS).add_ints(1);
  EXPECT_THAT(imputer.Import(), Fails(StatusCode::kDataLoss, "Imputer"));
  OnnxModel joined;
  joined.Input("x", {"2"}, onnx::TensorProto::STRING);
  LearnedNode(joined, "FeatureVectorizer");
  EXPECT_THAT(joined.Import(), Fails(StatusCode::kDataLoss, "FeatureVectorizer"));
  OnnxModel gemm;
  gemm.Input("a", {"2", "2"}).Input("c", {"2"}, onnx::TensorProto::STRING).Output("y");
  Set(gemm.Node("Gemm", {"a", "a", "c"}, {"y"}), "beta", 2.0f);
  EXPECT_THAT(gemm.Import(), Fails(StatusCode::kDataLoss, "Gemm"));
  OnnxModel mel(17);
  mel.Ints("n", {}, {8}).Floats("f", {}, {8}).Output("y");
  onnx::NodeProto& weights = mel.Node("MelWeightMatrix", {"n", "n", "n", "f", "f"}, {"y"});
  Set(weights, "output_datatype", int64_t{onnx::TensorProto::STRING});
  EXPECT_THAT(mel.Import(), Fails(StatusCode::kDataLoss, "'output_datatype' is string"));
  OnnxModel resize(18);
  resize.Input("x", {"2", "4"}, onnx::TensorProto::STRING).Output("y");
  resize.Floats("s", {2}, {1, 0.75f});
  onnx::NodeProto& cubic = resize.Node("Resize", {"x", "", "s"}, {"y"});
  Set(cubic, "mode", std::string("cubic"));
  Set(cubic, "antialias", int64_t{1});
  EXPECT_THAT(resize.Import(), Fails(StatusCode::kDataLoss, "interpolation of string"));
}

TEST(OnnxCompositesTest, KeysOfLabelsHaveOneType) {
  OnnxModel m;
  m.Input("x", {"2"}, onnx::TensorProto::STRING);
  onnx::NodeProto& node = LearnedNode(m, "LabelEncoder");
  Attribute(node, "keys_strings", onnx::AttributeProto::STRINGS).add_strings("a");
  for (const char* name : {"keys_int64s", "values_int64s"}) {
    onnx::AttributeProto& list = Attribute(node, name, onnx::AttributeProto::INTS);
    list.add_ints(1);
    list.add_ints(2);
  }
  EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, "1 keys, 2 values"));
}

}  // namespace
}  // namespace forge
