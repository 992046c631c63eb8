// SPDX-License-Identifier: Apache-2.0
// Graphs that are built through the C interface.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/forge.h"
#include "tests/support/temp_folder.h"

namespace forge {
namespace {

// Takes the error's code and message; 0 for none.
int CodeOfError(forge_error* error, std::string* message = nullptr) {
  if (error == nullptr) return 0;
  const int code = forge_error_code(error);
  if (message) *message = forge_error_message(error);
  forge_error_free(error);
  return code;
}

class ForgeGraphTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(CodeOfError(forge_graph_create(&graph_)), 0); }
  void TearDown() override { forge_graph_free(graph_); }

  forge_value Input(const char* name, const char* type) {
    forge_value value = FORGE_ABSENT;
    EXPECT_EQ(CodeOfError(forge_graph_input(graph_, name, type, &value)), 0);
    return value;
  }
  // Adds a node of one result.
  int Node(const char* op, const std::vector<forge_value>& operands, const char* attributes,
           forge_value* result, std::string* message = nullptr) {
    const forge_node node = {op, operands.data(), operands.size(), attributes, "layer.0", "aten"};
    size_t count = 0;
    const int code = CodeOfError(forge_graph_node(graph_, &node, result, 1, &count), message);
    EXPECT_EQ(count, code == 0 ? 1u : 0u);
    return code;
  }
  // Runs the model on the reference: one input x of [2, 3], one output.
  std::vector<float> Run(const forge_model* model, std::vector<float> x) {
    forge_session* session = nullptr;
    EXPECT_EQ(CodeOfError(forge_session_create(model, "reference", &session)), 0);
    const int64_t shape[] = {2, 3};
    forge_tensor *in = nullptr, *out = nullptr;
    EXPECT_EQ(CodeOfError(forge_tensor_create("x", "f32", shape, 2, x.data(), 24, &in)), 0);
    EXPECT_EQ(CodeOfError(forge_session_run(session, &in, 1, &out, 1)), 0);
    std::vector<float> result(forge_tensor_bytes(out) / sizeof(float));
    std::memcpy(result.data(), forge_tensor_data(out), forge_tensor_bytes(out));
    forge_tensor_free(in);
    forge_tensor_free(out);
    forge_session_free(session);
    return result;
  }
  forge_graph* graph_ = nullptr;
  TempFolder folder_;
};

alignas(16) float g_weights[] = {10, 20, 30, 40};
int g_released = 0;
void Release(void* context) { g_released += *static_cast<int*>(context); }

TEST_F(ForgeGraphTest, BuildsRunsAndSavesAModel) {
  ASSERT_EQ(CodeOfError(forge_graph_symbol(graph_, "n", 1, 8, 1)), 0);
  const forge_value x = Input("x", "f32[n, 3]");
  int one = 1;
  g_released = 0;
  const forge_variable bias = {"bias", "parameter", "f32[3]", g_weights, 12, Release, &one};
  forge_value b = FORGE_ABSENT, sum = FORGE_ABSENT, top = FORGE_ABSENT;
  ASSERT_EQ(CodeOfError(forge_graph_variable(graph_, &bias, &b)), 0);
  ASSERT_EQ(Node("add", {x, b}, nullptr, &sum), 0);
  EXPECT_STREQ(forge_graph_type(graph_, sum), "f32[n, 3]");
  ASSERT_EQ(CodeOfError(forge_graph_name(graph_, sum, "inner")), 0);
  ASSERT_EQ(Node("reduce", {sum}, "kind = max, axes = [1], keep_dims = false", &top), 0);
  EXPECT_STREQ(forge_graph_type(graph_, top), "f32[n]");
  ASSERT_EQ(CodeOfError(forge_graph_output(graph_, "y", top)), 0);
  ASSERT_EQ(CodeOfError(forge_graph_metadata(graph_, "source", "a test")), 0);
  forge_model* model = nullptr;
  ASSERT_EQ(CodeOfError(forge_graph_finish(graph_, &model)), 0);
  EXPECT_EQ(Run(model, {1, 2, 3, 40, 50, -60}), (std::vector<float>{33, 70}));
  EXPECT_STREQ(forge_model_metadata(model, "source"), "a test");

  const auto path = folder_ / "built.bin";
  ASSERT_EQ(CodeOfError(forge_model_save(model, path.c_str())), 0);
  EXPECT_EQ(g_released, 0) << "the model uses the bytes";
  forge_model_free(model);
  EXPECT_EQ(g_released, 1);
  forge_model* read = nullptr;
  ASSERT_EQ(CodeOfError(forge_model_load(path.c_str(), &read)), 0);
  EXPECT_EQ(Run(read, {1, 2, 3, 40, 50, -60}), (std::vector<float>{33, 70}));
  forge_model_free(read);
  std::string message;
  EXPECT_EQ(CodeOfError(forge_graph_output(graph_, "z", top), &message), FORGE_USAGE);
  EXPECT_NE(message.find("finished"), std::string::npos) << message;
}

// A state that each run adds x to.
TEST_F(ForgeGraphTest, StoresStates) {
  const forge_value x = Input("x", "f32[2, 3]");
  const std::vector<float> zeros(6);
  const forge_variable total = {"total", "state", "f32[2, 3]", zeros.data(), 24, nullptr, nullptr};
  forge_value before = FORGE_ABSENT, after = FORGE_ABSENT;
  ASSERT_EQ(CodeOfError(forge_graph_variable(graph_, &total, &before)), 0);
  ASSERT_EQ(Node("add", {x, before}, "", &after), 0);
  ASSERT_EQ(CodeOfError(forge_graph_store(graph_, before, after)), 0);
  ASSERT_EQ(CodeOfError(forge_graph_output(graph_, "y", after)), 0);
  forge_model* model = nullptr;
  ASSERT_EQ(CodeOfError(forge_graph_finish(graph_, &model)), 0);
  forge_session* session = nullptr;
  ASSERT_EQ(CodeOfError(forge_session_create(model, "reference", &session)), 0);
  forge_model_free(model);
  const std::vector<float> ones(6, 1.f);
  const int64_t shape[] = {2, 3};
  const forge_input in = {shape, 2, ones.data(), 24};
  std::vector<float> y(6);
  const forge_output out = {y.data(), 24};
  for (float runs = 1; runs <= 3; ++runs) {
    ASSERT_EQ(CodeOfError(forge_session_run_into(session, &in, 1, &out, 1)), 0);
    EXPECT_EQ(y, std::vector<float>(6, runs));
  }
  forge_session_free(session);
}

TEST_F(ForgeGraphTest, SaysWhatIsWrongWithANode) {
  const forge_value x = Input("x", "f32[2, 3]"), y = Input("y", "f32[2, 4]");
  forge_value z = FORGE_ABSENT;
  std::string message;
  EXPECT_EQ(Node("add", {x, y}, nullptr, &z, &message), FORGE_USAGE);
  EXPECT_NE(message.find("f32[2, 4]"), std::string::npos) << message;
  EXPECT_NE(message.find("layer.0"), std::string::npos) << message;
  EXPECT_EQ(z, FORGE_ABSENT);
  EXPECT_EQ(Node("add", {x, x}, nullptr, &z), 0) << "the graph is as it was";
  EXPECT_STREQ(forge_graph_type(graph_, z), "f32[2, 3]");
}

TEST_F(ForgeGraphTest, RefusesWhatDoesNotExist) {
  struct Wrong {
    const char *op, *attributes, *says;
    forge_value operand;
  };
  Input("x", "f32[2, 3]");
  for (const Wrong& w :
       {Wrong{"frobnicate", "", "frobnicate", 0}, Wrong{"softmax", "axes = 1", "axes", 0},
        Wrong{"softmax", "axis = x", "axis", 0}, Wrong{"softmax", "axis = 1,", "attribute", 0},
        Wrong{"softmax", "", "no value 7", 7}, Wrong{"softmax", "", "no value -2", -2}}) {
    forge_value z = FORGE_ABSENT;
    std::string message;
    EXPECT_EQ(Node(w.op, {w.operand}, w.attributes, &z, &message), FORGE_USAGE);
    EXPECT_NE(message.find(w.says), std::string::npos) << message;
  }
}

// Of x x and x, where x and 1 flow back to them: 2 x x + 1.
TEST_F(ForgeGraphTest, AddsGradients) {
  const forge_value x = Input("x", "f32[2, 3]");
  forge_value square = FORGE_ABSENT, one = FORGE_ABSENT, gradient = FORGE_ABSENT;
  ASSERT_EQ(Node("mul", {x, x}, nullptr, &square), 0);
  ASSERT_EQ(Node("fill", {}, "value = 1, shape = [2, 3]", &one), 0);
  const forge_value of[] = {square, x}, seeds[] = {x, one};
  const forge_gradients asked = {of, seeds, 2, &x, 1};
  ASSERT_EQ(CodeOfError(forge_graph_gradients(graph_, &asked, &gradient)), 0);
  ASSERT_EQ(CodeOfError(forge_graph_output(graph_, "y", gradient)), 0);
  forge_model* model = nullptr;
  ASSERT_EQ(CodeOfError(forge_graph_finish(graph_, &model)), 0);
  EXPECT_EQ(Run(model, {0, 1, 2, 3, -4, 5}), (std::vector<float>{1, 3, 9, 19, 33, 51}));
  forge_model_free(model);
}

TEST_F(ForgeGraphTest, RefusesGradientsThatDoNotExist) {
  const forge_value x = Input("x", "f32[2, 3]");
  forge_value bits = FORGE_ABSENT, y = FORGE_ABSENT, gradient = FORGE_ABSENT;
  ASSERT_EQ(Node("bit_cast", {x}, "to = i32", &bits), 0);
  ASSERT_EQ(Node("bit_cast", {bits}, "to = f32", &y), 0);
  const auto refused = [&](forge_value of, forge_value seed, forge_value with, int code,
                           const char* says) {
    const forge_gradients asked = {&of, &seed, 1, &with, 1};
    std::string message;
    EXPECT_EQ(CodeOfError(forge_graph_gradients(graph_, &asked, &gradient), &message), code);
    EXPECT_NE(message.find(says), std::string::npos) << message;
  };
  refused(y, x, x, FORGE_REFUSED, "layer.0");
  refused(bits, x, x, FORGE_USAGE, "i32[2, 3]");
  refused(y, x, 99, FORGE_USAGE, "no value 99");
  EXPECT_EQ(CodeOfError(forge_graph_gradients(graph_, nullptr, &gradient)), FORGE_USAGE);
  const forge_gradients none = {nullptr, nullptr, 1, &x, 1};
  EXPECT_EQ(CodeOfError(forge_graph_gradients(graph_, &none, &gradient)), FORGE_USAGE);
  EXPECT_EQ(Node("add", {x, y}, nullptr, &y), 0) << "the graph can be built on";
}

// y = x + bias, trained to give zeros.
TEST_F(ForgeGraphTest, TrainsWhatItBuilds) {
  const forge_value x = Input("x", "f32[2, 3]");
  const forge_variable bias = {"bias", "parameter", "f32[3]", g_weights, 12, nullptr, nullptr};
  forge_value b = FORGE_ABSENT, sum = FORGE_ABSENT;
  ASSERT_EQ(CodeOfError(forge_graph_variable(graph_, &bias, &b)), 0);
  ASSERT_EQ(Node("add", {x, b}, nullptr, &sum), 0);
  ASSERT_EQ(CodeOfError(forge_graph_output(graph_, "y", sum)), 0);
  forge_model* model = nullptr;
  ASSERT_EQ(CodeOfError(forge_graph_finish(graph_, &model)), 0);

  forge_training* training = nullptr;
  const char* const options = R"({"loss": "mse", "optimizer": "sgd", "momentum": 0.5})";
  ASSERT_EQ(CodeOfError(forge_training_create(model, "reference", options, &training)), 0);
  EXPECT_EQ(forge_training_variable_count(training), 2u);
  const std::vector<float> zeros(6);
  const int64_t shape[] = {2, 3};
  forge_tensor* batch[2] = {};
  for (int i = 0; i < 2; ++i)
    ASSERT_EQ(CodeOfError(forge_tensor_create(i == 0 ? "x" : "label", "f32", shape, 2, zeros.data(),
                                              24, &batch[i])),
              0);
  forge_grades grades = {};
  for (int step = 0; step < 60; ++step)
    ASSERT_EQ(CodeOfError(forge_training_step(training, batch, 2, 0.5, &grades)), 0);
  EXPECT_LT(grades.loss, 1e-6);
  EXPECT_EQ(grades.correct, -1);
  ASSERT_EQ(CodeOfError(forge_training_evaluate(training, batch, 2, &grades)), 0);
  EXPECT_EQ(grades.gradient_norm, -1);

  forge_tensor* variables[2] = {};
  EXPECT_EQ(CodeOfError(forge_training_read(training, variables, 1)), FORGE_USAGE);
  ASSERT_EQ(CodeOfError(forge_training_read(training, variables, 2)), 0);
  EXPECT_STREQ(forge_tensor_name(variables[0]), "bias");
  EXPECT_STREQ(forge_tensor_name(variables[1]), "bias.momentum");
  EXPECT_EQ(CodeOfError(forge_training_write(training, variables, 2)), 0);
  EXPECT_EQ(CodeOfError(forge_training_write(training, variables, 1)), FORGE_USAGE);
  forge_model* trained = nullptr;
  ASSERT_EQ(CodeOfError(forge_training_model(training, &trained)), 0);
  for (forge_tensor* t : {batch[0], batch[1], variables[0], variables[1]}) forge_tensor_free(t);
  forge_training_free(training);

  std::string message;
  EXPECT_EQ(CodeOfError(forge_training_create(model, nullptr, "[", &training), &message),
            FORGE_USAGE);
  EXPECT_NE(message.find("no JSON object"), std::string::npos) << message;
  EXPECT_EQ(CodeOfError(forge_training_create(nullptr, nullptr, nullptr, &training)), FORGE_USAGE);
  forge_model_free(trained);
  forge_model_free(model);
}

// y = x doubled where its first element is positive, else negated.
TEST_F(ForgeGraphTest, HasBodies) {
  const forge_value x = Input("x", "f32[2, 3]");
  const auto body = [&](const char* name, const char* op, const char* attributes) {
    forge_graph* made = nullptr;
    EXPECT_EQ(CodeOfError(forge_graph_body(graph_, name, &made)), 0);
    std::swap(graph_, made);
    forge_value y = Input("x", "f32[2, 3]");
    const bool binary = std::string_view(op) == "add";
    EXPECT_EQ(Node(op, binary ? std::vector{y, y} : std::vector{y}, attributes, &y), 0);
    EXPECT_EQ(CodeOfError(forge_graph_output(graph_, "y", y)), 0);
    std::swap(graph_, made);
    return made;
  };
  forge_graph* const twice = body("twice", "add", "");
  forge_graph* const negated = body("negated", "neg", "");
  forge_graph* again = nullptr;
  EXPECT_EQ(CodeOfError(forge_graph_body(graph_, "twice", &again)), FORGE_USAGE);
  EXPECT_EQ(CodeOfError(forge_graph_body(graph_, nullptr, &again)), FORGE_USAGE);

  forge_value first = 0, zero = 0, positive = 0, y = 0;
  ASSERT_EQ(Node("slice", {x}, "begin = [0, 0], end = [1, 1]", &first), 0);
  ASSERT_EQ(Node("fill", {}, "value = 0, dtype = f32, shape = []", &zero), 0);
  ASSERT_EQ(Node("greater", {first, zero}, "", &positive), 0);
  ASSERT_EQ(Node("if", {positive, x}, "yes = @twice, no = @negated", &y), 0);
  EXPECT_STREQ(forge_graph_type(graph_, y), "f32[2, 3]");
  ASSERT_EQ(CodeOfError(forge_graph_output(graph_, "y", y)), 0);
  forge_model* model = nullptr;
  EXPECT_EQ(CodeOfError(forge_graph_finish(twice, &model)), FORGE_USAGE);
  ASSERT_EQ(CodeOfError(forge_graph_finish(graph_, &model)), 0);
  EXPECT_EQ(CodeOfError(forge_graph_output(negated, "z", 0)), FORGE_USAGE);
  forge_graph_free(twice);
  forge_graph_free(negated);
  EXPECT_EQ(Run(model, {1, 2, 3, 4, 5, 6}), (std::vector<float>{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(Run(model, {-1, 2, 3, 4, 5, 6}), (std::vector<float>{1, -2, -3, -4, -5, -6}));
  forge_model_free(model);
}

// |x|, whose gradient is said to be 3 everywhere.
TEST_F(ForgeGraphTest, APartHasGradientsOfItsOwn) {
  const forge_value x = Input("x", "f32[2, 3]");
  forge_graph *body = nullptr, *backward = nullptr;
  ASSERT_EQ(CodeOfError(forge_graph_body(graph_, "body", &body)), 0);
  ASSERT_EQ(CodeOfError(forge_graph_body(graph_, "backward", &backward)), 0);
  std::swap(graph_, body);
  forge_value of = Input("x", "f32[2, 3]"), y = 0;
  EXPECT_EQ(Node("abs", {of}, "", &y), 0);
  EXPECT_EQ(CodeOfError(forge_graph_output(graph_, "y", y)), 0);
  std::swap(graph_, body);
  std::swap(graph_, backward);
  Input("x", "f32[2, 3]");
  Input("y", "f32[2, 3]");
  forge_value dy = Input("dy", "f32[2, 3]"), three = 0, dx = 0;
  EXPECT_EQ(Node("fill", {}, "value = 3, dtype = f32, shape = []", &three), 0);
  EXPECT_EQ(Node("mul", {dy, three}, "", &dx), 0);
  EXPECT_EQ(CodeOfError(forge_graph_output(graph_, "x", dx)), 0);
  std::swap(graph_, backward);
  ASSERT_EQ(Node("custom_gradient", {x}, "body = @body, backward = @backward", &y), 0);
  forge_value gradient = 0;
  const forge_gradients asked = {&y, &x, 1, &x, 1};
  ASSERT_EQ(CodeOfError(forge_graph_gradients(graph_, &asked, &gradient)), 0);
  ASSERT_EQ(CodeOfError(forge_graph_output(graph_, "dx", gradient)), 0);
  forge_model* model = nullptr;
  ASSERT_EQ(CodeOfError(forge_graph_finish(graph_, &model)), 0);
  forge_graph_free(body);
  forge_graph_free(backward);
  EXPECT_EQ(Run(model, {1, -2, 3, 4, 5, -6}), (std::vector<float>{3, -6, 9, 12, 15, -18}));
  forge_model_free(model);
}

TEST_F(ForgeGraphTest, ABodyReadsWeightsOfTheModel) {
  int one = 1;
  const forge_variable w{"w", "parameter", "f32[4]", g_weights, 16, Release, &one};
  forge_graph* body = nullptr;
  ASSERT_EQ(CodeOfError(forge_graph_body(graph_, "body", &body)), 0);
  forge_value v = FORGE_ABSENT;
  g_released = 0;
  EXPECT_EQ(CodeOfError(forge_graph_variable(graph_, &w, &v)), 0);
  EXPECT_EQ(g_released, 0);
  EXPECT_EQ(CodeOfError(forge_graph_variable(body, &w, &v)), 0);
  EXPECT_EQ(g_released, 1);  // that of the model is enough
  const forge_variable other{"w", "constant", "f32[4]", g_weights, 16, Release, &one};
  EXPECT_EQ(CodeOfError(forge_graph_variable(body, &other, &v)), 0);
  EXPECT_EQ(g_released, 1);
  forge_graph_free(body);
}

TEST_F(ForgeGraphTest, RefusesVariablesThatDoNotFit) {
  int one = 1;
  forge_value v = FORGE_ABSENT;
  for (const forge_variable& wrong :
       {forge_variable{"w", "parameter", "f32[4]", g_weights, 12, Release, &one},
        forge_variable{"w", "thing", "f32[4]", g_weights, 16, Release, &one},
        forge_variable{"w", "parameter", "f32[n]", g_weights, 16, Release, &one},
        forge_variable{"w", "parameter", "f33[4]", g_weights, 16, Release, &one},
        forge_variable{nullptr, "parameter", "f32[4]", g_weights, 16, Release, &one}}) {
    g_released = 0;
    EXPECT_EQ(CodeOfError(forge_graph_variable(graph_, &wrong, &v)), FORGE_USAGE);
    EXPECT_EQ(g_released, 1);
    EXPECT_EQ(CodeOfError(forge_graph_variable(graph_, &wrong, &v)), FORGE_USAGE);
    EXPECT_EQ(g_released, 2);
  }
}

TEST_F(ForgeGraphTest, RefusesSymbolsWithoutValues) {
  EXPECT_EQ(CodeOfError(forge_graph_symbol(graph_, "n", 3, 2, 1)), FORGE_USAGE);
  EXPECT_EQ(forge_graph_type(graph_, 0), nullptr);
  EXPECT_EQ(CodeOfError(forge_graph_input(nullptr, "x", "f32[]", nullptr)), FORGE_USAGE);
}

TEST(ForgeOpsTest, DescribesEveryOp) {
  const auto ops = nlohmann::json::parse(forge_ops_json());
  EXPECT_GT(ops.size(), 200u);
  const auto reduce =
      std::find_if(ops.begin(), ops.end(), [](const auto& op) { return op["name"] == "reduce"; });
  ASSERT_NE(reduce, ops.end());
  EXPECT_EQ((*reduce)["inputs"], "x: number[*d]");
  const auto& kind = (*reduce)["attributes"][0];
  EXPECT_EQ(kind["name"], "kind");
  EXPECT_EQ(kind["type"], "choice");
  EXPECT_EQ(kind["default"], "sum");
  EXPECT_EQ(kind["choices"][1], "mean");
}

}  // namespace
}  // namespace forge
