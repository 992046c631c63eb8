// SPDX-License-Identifier: Apache-2.0
// The domain ai.onnx.ml, against numbers that onnxruntime gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/onnx_model.h"
#include "tests/support/status_matchers.h"

namespace forge {
namespace {

using absl::StatusCode;
using Ints = std::vector<int64_t>;
using Weights = std::vector<float>;
using Words = std::vector<std::string>;

// A node of ai.onnx.ml on x [n, columns].
class Learned {
 public:
  Learned(std::string_view op, const std::vector<std::string>& outputs, int64_t columns = 1) {
    onnx::OperatorSetIdProto& set = *m_.proto().add_opset_import();
    set.set_domain("ai.onnx.ml");
    set.set_version(3);
    m_.Input("x", {"n", std::to_string(columns)});
    for (const std::string& name : outputs) m_.Output(name);
    node_ = &m_.Node(op, {"x"}, outputs);
    node_->set_domain("ai.onnx.ml");
  }
  template <class T>
  Learned& With(std::string_view name, const T& value) {
    Set(*node_, name, value);
    return *this;
  }
  // One tree: x <= 0 leads to leaf 1, else to leaf 2.
  Learned& WithStump() {
    With("nodes_treeids", Ints{0, 0, 0}).With("nodes_nodeids", Ints{0, 1, 2});
    With("nodes_featureids", Ints{0, 0, 0}).With("nodes_values", Weights{0, 0, 0});
    With("nodes_modes", Words{"BRANCH_LEQ", "LEAF", "LEAF"});
    return With("nodes_truenodeids", Ints{1, 0, 0}).With("nodes_falsenodeids", Ints{2, 0, 0});
  }
  // Weights of leaves, by the prefix of their attributes.
  Learned& WithLeaves(const std::string& of, const Ints& nodes, const Ints& ids,
                      const Weights& weights) {
    With(of + "_treeids", Ints(nodes.size(), 0)).With(of + "_nodeids", nodes);
    return With(of + "_ids", ids).With(of + "_weights", weights);
  }
  void ExpectGives(const Weights& x, const std::vector<Weights>& wanted) const {
    const auto rows = static_cast<int64_t>(x.size());
    const auto out = ImportAndRun(m_, {FloatTensor({rows, 1}, x)});
    ASSERT_TRUE(out.ok()) << out.status();
    ASSERT_EQ(out->size(), wanted.size());
    for (size_t k = 0; k < wanted.size(); ++k) {
      ASSERT_EQ((*out)[k].elements(), static_cast<int64_t>(wanted[k].size()));
      for (size_t i = 0; i < wanted[k].size(); ++i)
        EXPECT_NEAR((*out)[k].f64(static_cast<int64_t>(i)), wanted[k][i], 1e-6) << k << " " << i;
    }
  }
  const OnnxModel& model() const { return m_; }
  void ExpectRefused(std::string_view says) const {
    EXPECT_THAT(m_.Import(), Fails(StatusCode::kDataLoss, says));
  }

 private:
  OnnxModel m_;
  onnx::NodeProto* node_;
};

TEST(OnnxLearnedTest, TreesAddToTheirTargets) {
  Learned m("TreeEnsembleRegressor", {"y"});
  m.WithStump().WithLeaves("target", {1, 1, 2}, {0, 1, 0}, {-0.3f, 0.4f, 0.8f});
  m.With("n_targets", int64_t{2}).With("base_values", Weights{1, 2});
  m.ExpectGives({-1, 1}, {{0.7f, 2.4f, 1.8f, 2}});
}

TEST(OnnxLearnedTest, SharesOfOneClassLeaveTheRestToTheOther) {
  Learned m("TreeEnsembleClassifier", {"label", "scores"});
  m.WithStump().WithLeaves("class", {1, 2}, {0, 0}, {0.3f, 0.8f});
  m.With("classlabels_int64s", Ints{5, 7});
  m.ExpectGives({-1, 1}, {{5, 7}, {0.7f, 0.3f, 0.2f, 0.8f}});
}

TEST(OnnxLearnedTest, ScoresOfOneClassAreThoseOfTheOtherNegated) {
  Learned m("TreeEnsembleClassifier", {"label", "scores"});
  m.WithStump().WithLeaves("class", {1, 2}, {0, 0}, {-0.3f, 0.8f});
  m.With("classlabels_int64s", Ints{5, 7});
  m.ExpectGives({-1, 1}, {{5, 7}, {0.3f, -0.3f, -0.8f, 0.8f}});
  m.With("post_transform", std::string_view("LOGISTIC"));
  m.ExpectGives({-1, 1}, {{5, 7}, {0.57444251f, 0.42555749f, 0.31002551f, 0.68997449f}});
}

TEST(OnnxLearnedTest, TheGreatestScoreIsTheClass) {
  Learned m("TreeEnsembleClassifier", {"label", "scores"});
  m.WithStump().WithLeaves("class", {1, 1, 2, 2}, {0, 1, 2, 0}, {0.7f, 0.3f, 0.2f, 0.8f});
  m.With("classlabels_int64s", Ints{5, 7, 9}).With("base_values", Weights{0.1f, 0.2f, 0.9f});
  m.ExpectGives({-1, 1}, {{9, 9}, {0.8f, 0.5f, 0.9f, 0.9f, 0.2f, 1.1f}});
}

TEST(OnnxLearnedTest, ClassesMayBeStrings) {
  Learned m("TreeEnsembleClassifier", {"label", "scores"});
  m.WithStump().WithLeaves("class", {1, 2}, {0, 0}, {0.3f, 0.8f});
  m.With("classlabels_strings", Words{"cat", "dog"});
  const auto out = ImportAndRun(m.model(), {FloatTensor({2, 1}, {-1, 1})});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].string(0), "cat");
  EXPECT_EQ((*out)[0].string(1), "dog");
}

TEST(OnnxLearnedTest, SoftmaxLeavesZeros) {
  Learned m("LinearClassifier", {"label", "scores"});
  m.With("coefficients", Weights{1, 0, -1}).With("intercepts", Weights{0, 0, 0});
  m.With("classlabels_ints", Ints{5, 7, 9})
      .With("post_transform", std::string_view("SOFTMAX_ZERO"));
  m.ExpectGives({-2}, {{9}, {0.01798621f, 0, 0.98201376f}});
}

TEST(OnnxLearnedTest, OneScoreOfALinearModelIsThatOfTheSecondClass) {
  Learned m("LinearClassifier", {"label", "scores"});
  m.With("coefficients", Weights{1}).With("intercepts", Weights{0.5f});
  m.With("classlabels_ints", Ints{5, 7});
  m.ExpectGives({-2, -0.25f}, {{5, 7}, {2.5f, -1.5f, 0.75f, 0.25f}});
}

TEST(OnnxLearnedTest, RefusesTreesThatDoNotFit) {
  Learned lost("TreeEnsembleRegressor", {"y"});
  lost.WithStump().WithLeaves("target", {3}, {0}, {1});
  lost.ExpectRefused("tree 0 has no node 3");
  Learned inner("TreeEnsembleRegressor", {"y"});
  inner.WithStump().WithLeaves("target", {0}, {0}, {1});
  inner.ExpectRefused("node 0 of tree 0 has a weight and is no leaf");
  Learned base("TreeEnsembleRegressor", {"y"});
  base.WithStump().WithLeaves("target", {1}, {0}, {1}).With("base_values", Weights{1, 2});
  base.ExpectRefused("2 base values for 1 targets");
  Learned nameless("TreeEnsembleClassifier", {"label", "scores"});
  nameless.WithStump().WithLeaves("class", {1}, {0}, {1});
  nameless.ExpectRefused("0 labels that are strings");
}

}  // namespace
}  // namespace forge
