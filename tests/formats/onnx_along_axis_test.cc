// SPDX-License-Identifier: Apache-2.0
// Operators that read an axis in order, or put it in order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/ir_values.h"
#include "tests/support/onnx_model.h"
#include "tests/support/status_matchers.h"

namespace forge {
namespace {

using absl::StatusCode;
using testing::ElementsAre;

// A model of one node on x and what else it takes, with results y and z.
OnnxModel ModelAlong(std::string_view op, int64_t opset, const std::vector<std::string>& shape,
                     std::vector<std::string> operands = {"x"}) {
  OnnxModel m(opset);
  m.Input("x", shape).Output("y");
  m.Node(op, std::move(operands), {"y"});
  return m;
}
onnx::NodeProto& NodeAlong(OnnxModel& m) { return *m.graph().mutable_node(0); }

std::vector<double> RunAlong(const OnnxModel& m, ir::HostValue x, size_t result = 0) {
  const auto out = ImportAndRun(m, {std::move(x)});
  EXPECT_THAT(out, Succeeds());
  return out.ok() ? Numbers((*out)[result]) : std::vector<double>();
}

TEST(OnnxAlongAxisTest, ArgMaxIsOverTheFirstAxisByDefault) {
  OnnxModel m = ModelAlong("ArgMax", 1, {"2", "3"});
  EXPECT_THAT(RunAlong(m, FloatTensor({2, 3}, {1, 5, 3, 4, 2, 6})), ElementsAre(1, 0, 1));
  Set(NodeAlong(m), "axis", int64_t{1});
  EXPECT_THAT(RunAlong(m, FloatTensor({2, 3}, {1, 5, 3, 4, 2, 6})), ElementsAre(1, 2));
}

TEST(OnnxAlongAxisTest, ArgMinTakesTheLastOfEqualElementsIfTold) {
  OnnxModel m = ModelAlong("ArgMin", 12, {"4"});
  EXPECT_THAT(RunAlong(m, FloatTensor({4}, {2, 1, 1, 3})), ElementsAre(1));
  Set(NodeAlong(m), "select_last_index", int64_t{1});
  EXPECT_THAT(RunAlong(m, FloatTensor({4}, {2, 1, 1, 3})), ElementsAre(2));
  m = ModelAlong("ArgMin", 11, {"4"});
  Set(NodeAlong(m), "select_last_index", int64_t{1});
  EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, "select_last_index"));
}

TEST(OnnxAlongAxisTest, CumSumRunsEitherWayWithOrWithoutTheElement) {
  OnnxModel m = ModelAlong("CumSum", 14, {"4"}, {"x", "axis"});
  m.Ints("axis", {}, {0});
  const ir::HostValue x = FloatTensor({4}, {1, 2, 3, 4});
  EXPECT_THAT(RunAlong(m, x), ElementsAre(1, 3, 6, 10));
  Set(NodeAlong(m), "exclusive", int64_t{1});
  EXPECT_THAT(RunAlong(m, x), ElementsAre(0, 1, 3, 6));
  Set(NodeAlong(m), "reverse", int64_t{1});
  EXPECT_THAT(RunAlong(m, x), ElementsAre(9, 7, 4, 0));
}

TEST(OnnxAlongAxisTest, CumSumTakesOneAxis) {
  OnnxModel m = ModelAlong("CumSum", 14, {"2", "2"}, {"x", "axis"});
  m.Ints("axis", {2}, {0, 1});
  EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, "its axis is 2 numbers"));
}

TEST(OnnxAlongAxisTest, CumProdMultiplies) {
  OnnxModel m = ModelAlong("CumProd", 26, {"2", "2"}, {"x", "axis"});
  m.Ints("axis", {}, {-2});
  EXPECT_THAT(RunAlong(m, FloatTensor({2, 2}, {1, 2, 3, 4})), ElementsAre(1, 2, 3, 8));
}

TEST(OnnxAlongAxisTest, TopKHasValuesAndIndices) {
  const ir::HostValue x = FloatTensor({5}, {1, 4, 2, 4, 3});
  OnnxModel old(9);
  old.Input("x", {"5"}).Output("y").Output("z");
  Set(old.Node("TopK", {"x"}, {"y", "z"}), "k", int64_t{3});
  EXPECT_THAT(RunAlong(old, x), ElementsAre(4, 4, 3));
  EXPECT_THAT(RunAlong(old, x, 1), ElementsAre(1, 3, 4));
  OnnxModel m(11);
  m.Input("x", {"5"}).Output("y").Output("z").Ints("k", {1}, {2});
  Set(m.Node("TopK", {"x", "k"}, {"y", "z"}), "largest", int64_t{0});
  EXPECT_THAT(RunAlong(m, x), ElementsAre(1, 2));
  EXPECT_THAT(RunAlong(m, x, 1), ElementsAre(0, 2));
}

TEST(OnnxAlongAxisTest, TopKNeedsItsK) {
  OnnxModel old = ModelAlong("TopK", 9, {"5"});
  EXPECT_THAT(old.Import(), Fails(StatusCode::kDataLoss, "it has no k"));
  OnnxModel m = ModelAlong("TopK", 11, {"5"}, {"x", "k"});
  m.Ints("k", {1}, {6});
  EXPECT_THAT(m.Import(), Fails(StatusCode::kDataLoss, "k is 6, axis 0 has 5 elements"));
}

}  // namespace
}  // namespace forge
