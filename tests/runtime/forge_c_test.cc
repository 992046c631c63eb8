// SPDX-License-Identifier: Apache-2.0
// The C interface as a C program uses it.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "base/platform.h"
#include "formats/model_bin/model_bin.h"
#include "ir/ops/movement/update_slice.h"
#include "runtime/forge.h"
#include "tests/runtime/models.h"
#include "tests/support/onnx_model.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace forge {
namespace {

// Takes the error's code and message; 0 for none.
int CodeOf(forge_error* error, std::string* message = nullptr) {
  if (error == nullptr) return 0;
  const int code = forge_error_code(error);
  if (message) *message = forge_error_message(error);
  EXPECT_NE(*forge_error_message(error), '\0');
  forge_error_free(error);
  return code;
}

class ForgeCTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto path = folder_ / "model.bin";
    ASSERT_THAT(WriteModel(testing::AddingModel()->module(), path), Succeeds());
    ASSERT_EQ(CodeOf(forge_model_load(path.c_str(), &model_)), 0);
    ASSERT_EQ(CodeOf(forge_session_create(model_, "reference", &session_)), 0);
  }
  void TearDown() override {
    forge_session_free(session_);
    forge_model_free(model_);
  }
  static forge_tensor* Tensor(const char* name, std::vector<int64_t> shape,
                              std::vector<float> data) {
    forge_tensor* t = nullptr;
    EXPECT_EQ(CodeOf(forge_tensor_create(name, "f32", shape.data(), shape.size(), data.data(),
                                         data.size() * sizeof(float), &t)),
              0);
    return t;
  }
  TempFolder folder_;
  forge_model* model_ = nullptr;
  forge_session* session_ = nullptr;
};

TEST_F(ForgeCTest, LoadsAndRuns) {
  forge_model_free(model_);  // the session keeps what it needs
  model_ = nullptr;
  ASSERT_EQ(forge_session_input_count(session_), 1u);
  EXPECT_STREQ(forge_session_input_name(session_, 0), "x");
  EXPECT_EQ(forge_session_input_name(session_, 1), nullptr);
  ASSERT_EQ(forge_session_output_count(session_), 1u);
  EXPECT_STREQ(forge_session_output_name(session_, 0), "y");
  EXPECT_EQ(forge_session_output_name(session_, 9), nullptr);
  EXPECT_STREQ(forge_session_device_name(session_), "reference evaluators");
  forge_tensor* x = Tensor("x", {2, 3}, {1, 2, 3, -99, 5, 6});
  forge_tensor* y = nullptr;
  ASSERT_EQ(CodeOf(forge_session_run(session_, &x, 1, &y, 1)), 0);
  EXPECT_STREQ(forge_tensor_name(y), "y");
  EXPECT_STREQ(forge_tensor_dtype(y), "f32");
  ASSERT_EQ(forge_tensor_rank(y), 2u);
  EXPECT_EQ(forge_tensor_shape(y)[0], 2);
  ASSERT_EQ(forge_tensor_bytes(y), 24u);
  const auto* data = static_cast<const float*>(forge_tensor_data(y));
  EXPECT_EQ(std::vector<float>(data, data + 6), (std::vector<float>{11, 22, 33, 0, 25, 36}));
  forge_tensor_free(x);
  forge_tensor_free(y);
}

TEST_F(ForgeCTest, TellsWhatTheModelTakesAndGives) {
  EXPECT_STREQ(forge_session_input_dtype(session_, 0), "f32");
  ASSERT_EQ(forge_session_input_rank(session_, 0), 2);
  EXPECT_EQ(forge_session_input_shape(session_, 0)[0], -1);
  EXPECT_EQ(forge_session_input_shape(session_, 0)[1], 3);
  EXPECT_STREQ(forge_session_input_symbol(session_, 0, 0), "n");
  EXPECT_EQ(forge_session_input_symbol(session_, 0, 1), nullptr);
  EXPECT_EQ(forge_session_input_symbol(session_, 0, 2), nullptr);
  EXPECT_STREQ(forge_session_output_dtype(session_, 0), "f32");
  ASSERT_EQ(forge_session_output_rank(session_, 0), 2);
  EXPECT_EQ(forge_session_output_shape(session_, 0)[1], 3);
  EXPECT_STREQ(forge_session_output_symbol(session_, 0, 0), "n");
  EXPECT_EQ(forge_session_input_dtype(session_, 1), nullptr);
  EXPECT_EQ(forge_session_input_rank(session_, 1), -1);
  EXPECT_EQ(forge_session_input_shape(session_, 1), nullptr);
  EXPECT_EQ(forge_session_output_symbol(session_, 1, 0), nullptr);
}

// A state whose row n the run replaces and returns.
TEST_F(ForgeCTest, SetsStepValues) {
  ir::Module m;
  const auto n = std::make_shared<ir::Symbol>(
      ir::Symbol{.name = "n", .min = 0, .max = 3, .divisor = 1, .when = ir::When::kStep});
  m.AddSymbol(n);
  ir::Function& f = *m.AddFunction("main");
  ir::Variable* state =
      testing::AddVariable(m, "rows", ir::Variable::Role::kState, testing::Noise({4, 2}));
  const ir::Value x = f.Argument("x", F32({1, 2}));
  const ir::Value after = f(ir::UpdateSlice{{ir::Dim(n), 0}}, {f.Read(state), x});
  f.Store(state, after);
  f.Return("y", after);
  const auto path = folder_ / "rows.bin";
  ASSERT_THAT(WriteModel(m, path), Succeeds());
  forge_model_free(model_);
  forge_session_free(session_);
  ASSERT_EQ(CodeOf(forge_model_load(path.c_str(), &model_)), 0);
  ASSERT_EQ(CodeOf(forge_session_create(model_, "cpu", &session_)), 0);
  forge_tensor* row = Tensor("x", {1, 2}, {5, 6});
  for (const int64_t at : {3, 1}) {
    ASSERT_EQ(CodeOf(forge_session_set_step_value(session_, "n", at)), 0);
    forge_tensor* y = nullptr;
    ASSERT_EQ(CodeOf(forge_session_run(session_, &row, 1, &y, 1)), 0);
    const auto* rows = static_cast<const float*>(forge_tensor_data(y));
    EXPECT_EQ(rows[2 * at], 5);
    EXPECT_EQ(rows[7], 6) << "the row of the first run";
    forge_tensor_free(y);
  }
  forge_tensor_free(row);
  std::string message;
  EXPECT_EQ(CodeOf(forge_session_set_step_value(session_, "n", 4), &message), FORGE_USAGE);
  EXPECT_NE(message.find("0 to 3"), std::string::npos) << message;
  EXPECT_EQ(CodeOf(forge_session_set_step_value(session_, "m", 1)), FORGE_USAGE);
  EXPECT_EQ(CodeOf(forge_session_set_step_value(session_, nullptr, 1)), FORGE_USAGE);
  EXPECT_EQ(CodeOf(forge_session_set_step_value(nullptr, "n", 1)), FORGE_USAGE);
}

TEST_F(ForgeCTest, BindsTheExtentsOfInputs) {
  const int64_t shape[] = {5, 3}, wrong[] = {5, 4};
  const float x[20] = {};
  const forge_input in = {shape, 2, x, 60}, unfit = {wrong, 2, x, 80};
  ASSERT_EQ(CodeOf(forge_session_bind_inputs(session_, &in, 1)), 0);
  EXPECT_EQ(forge_session_bound_output_shape(session_, 0)[0], 5);
  EXPECT_EQ(forge_session_bound_output_bytes(session_, 0), 60u);
  std::string message;
  EXPECT_EQ(CodeOf(forge_session_bind_inputs(session_, &unfit, 1), &message), FORGE_USAGE);
  EXPECT_NE(message.find("axis 1"), std::string::npos) << message;
  EXPECT_EQ(CodeOf(forge_session_bind_inputs(session_, &in, 0)), FORGE_USAGE);
  EXPECT_EQ(CodeOf(forge_session_bind_inputs(session_, nullptr, 1)), FORGE_USAGE);
  EXPECT_EQ(CodeOf(forge_session_bind_inputs(nullptr, &in, 1)), FORGE_USAGE);
}

TEST_F(ForgeCTest, BindsAheadOfARun) {
  const char* const names[] = {"n", "m", nullptr, "n"};
  const int64_t extents[] = {2, 2, 2, 3};
  EXPECT_EQ(CodeOf(forge_session_bind(session_, names, extents, 1)), 0);
  std::string message;
  EXPECT_EQ(CodeOf(forge_session_bind(session_, names, extents, 2), &message), FORGE_USAGE);
  EXPECT_NE(message.find("no dimension 'm'"), std::string::npos) << message;
  EXPECT_EQ(CodeOf(forge_session_bind(session_, nullptr, nullptr, 0), &message), FORGE_USAGE);
  EXPECT_NE(message.find("'n'"), std::string::npos) << message;
  EXPECT_EQ(CodeOf(forge_session_bind(session_, names + 2, extents, 1)), FORGE_USAGE);
  EXPECT_EQ(CodeOf(forge_session_bind(session_, names + 2, extents, 2)), FORGE_USAGE);
  EXPECT_EQ(CodeOf(forge_session_bind(session_, nullptr, extents, 1)), FORGE_USAGE);
  EXPECT_EQ(CodeOf(forge_session_bind(nullptr, names, extents, 1)), FORGE_USAGE);
  const int64_t negative = -1;
  EXPECT_EQ(CodeOf(forge_session_bind(session_, names, &negative, 1)), FORGE_USAGE);
  const char* const twice[] = {"n", "n"};
  EXPECT_EQ(CodeOf(forge_session_bind(session_, twice, extents, 2), &message), FORGE_USAGE);
  EXPECT_NE(message.find("twice"), std::string::npos) << message;
}

TEST_F(ForgeCTest, BindTakesSymbolsAsTheyAreTold) {
  auto m = std::make_unique<ir::Module>();
  ir::Function& f = *m->AddFunction("main");
  const ir::Dim n(m->SymbolNamed("batch \"size\" N"));
  f.Return("y", f(ir::Relu{}, {f.Argument("x", F32({n, n + 1}))}));
  const auto path = folder_ / "names.bin";
  ASSERT_THAT(WriteModel(*m, path), Succeeds());
  forge_model* model = nullptr;
  ASSERT_EQ(CodeOf(forge_model_load(path.c_str(), &model)), 0);
  forge_session* session = nullptr;
  ASSERT_EQ(CodeOf(forge_session_create(model, "reference", &session)), 0);
  const char* const symbol = forge_session_input_symbol(session, 0, 0);
  EXPECT_STREQ(symbol, "batch \"size\" N");
  const int64_t extent = 3;
  EXPECT_EQ(CodeOf(forge_session_bind(session, &symbol, &extent, 1)), 0);
  EXPECT_NE(forge_session_input_symbol(session, 0, 1), nullptr);
  forge_session_free(session);
  forge_model_free(model);
}

TEST_F(ForgeCTest, MessagesAreUtf8) {
  forge_session* session = nullptr;
  std::string message;
  EXPECT_EQ(CodeOf(forge_session_create(model_, "met\xffl\xc3", &session), &message), FORGE_USAGE);
  EXPECT_NE(message.find("met\xef\xbf\xbdl\xef\xbf\xbd"), std::string::npos) << message;
}

TEST_F(ForgeCTest, RunsOnCallersMemory) {
  const float x[] = {1, 2, 3, -99, 5, 6};
  float y[6] = {};
  const int64_t shape[] = {2, 3};
  forge_input in = {shape, 2, x, sizeof(x)};
  forge_output out = {y, sizeof(y)};
  EXPECT_EQ(forge_session_bound_output_shape(session_, 0), nullptr);
  EXPECT_EQ(forge_session_bound_output_bytes(session_, 0), 0u);
  ASSERT_EQ(CodeOf(forge_session_run_into(session_, &in, 1, &out, 1)), 0);
  EXPECT_EQ(std::vector<float>(y, y + 6), (std::vector<float>{11, 22, 33, 0, 25, 36}));
  ASSERT_NE(forge_session_bound_output_shape(session_, 0), nullptr);
  EXPECT_EQ(forge_session_bound_output_shape(session_, 0)[0], 2);
  EXPECT_EQ(forge_session_bound_output_shape(session_, 0)[1], 3);
  EXPECT_EQ(forge_session_bound_output_bytes(session_, 0), sizeof(y));
  EXPECT_EQ(forge_session_bound_output_shape(session_, 1), nullptr);
  const char* const name = "n";
  const int64_t extent = 5;
  ASSERT_EQ(CodeOf(forge_session_bind(session_, &name, &extent, 1)), 0);
  EXPECT_EQ(forge_session_bound_output_bytes(session_, 0), 60u);

  const auto refuses = [&](const forge_input& i, const forge_output& o, const char* says) {
    std::string message;
    EXPECT_EQ(CodeOf(forge_session_run_into(session_, &i, 1, &o, 1), &message), FORGE_USAGE);
    EXPECT_NE(message.find(says), std::string::npos) << message;
  };
  refuses({shape, 2, x, 20}, out, "20 bytes");
  refuses({shape, 1, x, 8}, out, "input x");
  refuses({shape, 2, nullptr, 24}, out, "NULL");
  refuses({nullptr, 2, x, 24}, out, "NULL");
  refuses(in, {y, 20}, "24 bytes");
  refuses(in, {nullptr, 24}, "NULL");
  refuses({shape, 2, y, sizeof(y)}, out, "overlaps that of input 0");
  EXPECT_EQ(CodeOf(forge_session_run_into(session_, &in, 0, &out, 1)), FORGE_USAGE);
  EXPECT_EQ(CodeOf(forge_session_run_into(session_, &in, 1, &out, 0)), FORGE_USAGE);
  EXPECT_EQ(CodeOf(forge_session_run_into(session_, nullptr, 1, &out, 1)), FORGE_USAGE);
  EXPECT_EQ(CodeOf(forge_session_run_into(session_, &in, 1, nullptr, 1)), FORGE_USAGE);
  EXPECT_EQ(CodeOf(forge_session_run_into(nullptr, &in, 1, &out, 1)), FORGE_USAGE);
}

// Of a file: how many elements are not 0 is known after a run.
TEST_F(ForgeCTest, RunsInParts) {
  EXPECT_EQ(forge_session_runs_in_parts(session_), 0);
  OnnxModel onnx;
  onnx.Input("x", {"n"}).Output("at").Node("NonZero", {"x"}, {"at"});
  onnx.Output("words").Node("Cast", {"x"}, {"words"});
  Set(*onnx.graph().mutable_node(1), "to", int64_t{onnx::TensorProto::STRING});
  const std::string file = onnx.File();
  forge_model* model = nullptr;
  ASSERT_EQ(CodeOf(forge_model_load_memory(file.data(), file.size(), &model)), 0);
  forge_options* options = nullptr;
  ASSERT_EQ(CodeOf(forge_options_create(&options)), 0);
  ASSERT_EQ(CodeOf(forge_options_add_output(options, "at")), 0);
  forge_session *session = nullptr, *with_words = nullptr;
  ASSERT_EQ(CodeOf(forge_session_create_with(model, "reference", options, &session)), 0);
  ASSERT_EQ(CodeOf(forge_session_create(model, "reference", &with_words)), 0);
  EXPECT_EQ(forge_session_runs_in_parts(session), 1);

  const float x[] = {0, 3, 0, 1};
  const int64_t shape[] = {4};
  const forge_input in = {shape, 1, x, sizeof(x)};
  EXPECT_EQ(CodeOf(forge_session_bind_inputs(session, &in, 1)), 0);
  EXPECT_EQ(forge_session_bound_output_shape(session, 0), nullptr);
  forge_tensor* const tensor = Tensor("x", {4}, {0, 3, 0, 1});
  forge_tensor *out = nullptr, *all[2] = {};
  ASSERT_EQ(CodeOf(forge_session_run(session, &tensor, 1, &out, 1)), 0);
  EXPECT_EQ(forge_tensor_shape(out)[1], 2);
  EXPECT_EQ(static_cast<const int64_t*>(forge_tensor_data(out))[1], 3);
  std::string message;
  EXPECT_EQ(CodeOf(forge_session_run(with_words, &tensor, 1, all, 2), &message), FORGE_REFUSED);
  EXPECT_NE(message.find("'words'"), std::string::npos) << message;
  for (forge_tensor* t : {tensor, out}) forge_tensor_free(t);
  for (forge_session* s : {session, with_words}) forge_session_free(s);
  forge_options_free(options);
  forge_model_free(model);
}

TEST_F(ForgeCTest, LoadsFromMemory) {
  const auto file = *MapFile(folder_ / "model.bin");
  std::vector<uint8_t> bytes(file.data(), file.data() + file.size());
  forge_model* model = nullptr;
  ASSERT_EQ(CodeOf(forge_model_load_memory(bytes.data(), bytes.size(), &model)), 0);
  std::fill(bytes.begin(), bytes.end(), uint8_t{0});  // it was copied
  EXPECT_STREQ(forge_model_metadata(model, "labels"), "[]");
  forge_session* session = nullptr;
  ASSERT_EQ(CodeOf(forge_session_create(model, "reference", &session)), 0);
  forge_model_free(model);
  model = nullptr;
  forge_tensor* x = Tensor("x", {1, 3}, {1, 2, 3});
  forge_tensor* y = nullptr;
  ASSERT_EQ(CodeOf(forge_session_run(session, &x, 1, &y, 1)), 0);
  EXPECT_EQ(static_cast<const float*>(forge_tensor_data(y))[2], 33);
  forge_tensor_free(x);
  forge_tensor_free(y);
  forge_session_free(session);
  EXPECT_EQ(CodeOf(forge_model_load_memory("no model", 8, &model)), FORGE_FILE);
  EXPECT_EQ(CodeOf(forge_model_load_memory(file.data(), file.size() - 1, &model)), FORGE_FILE);
  EXPECT_EQ(CodeOf(forge_model_load_memory(file.data(), 0, &model)), FORGE_FILE);
  EXPECT_EQ(CodeOf(forge_model_load_memory(nullptr, 8, &model)), FORGE_USAGE);
  EXPECT_EQ(CodeOf(forge_model_load_memory(file.data(), file.size(), nullptr)), FORGE_USAGE);
  EXPECT_EQ(model, nullptr);
}

TEST_F(ForgeCTest, ListsDevices) {
  forge_devices* devices = nullptr;
  ASSERT_EQ(CodeOf(forge_devices_list(&devices)), 0);
  bool reference = false;
  for (size_t i = 0; i < forge_devices_count(devices); ++i) {
    EXPECT_NE(*forge_devices_name(devices, i), '\0');
    if (std::string_view(forge_devices_id(devices, i)) != "reference:0") continue;
    reference = true;
    EXPECT_EQ(forge_devices_problem(devices, i), nullptr);
  }
  EXPECT_TRUE(reference);
  const size_t end = forge_devices_count(devices);
  EXPECT_EQ(forge_devices_id(devices, end), nullptr);
  EXPECT_EQ(forge_devices_name(devices, end), nullptr);
  EXPECT_EQ(forge_devices_problem(devices, end), nullptr);
  forge_devices_free(devices);
  EXPECT_EQ(CodeOf(forge_devices_list(nullptr)), FORGE_USAGE);
}

TEST_F(ForgeCTest, TakesOptions) {
  forge_options* options = nullptr;
  ASSERT_EQ(CodeOf(forge_options_create(&options)), 0);
  EXPECT_EQ(CodeOf(forge_options_set_function(options, "main")), 0);
  EXPECT_EQ(CodeOf(forge_options_add_output(options, "sum")), 0);
  EXPECT_EQ(CodeOf(forge_options_add_output(options, "y")), 0);
  EXPECT_EQ(CodeOf(forge_options_set_dim(options, "n", 2)), 0);
  EXPECT_EQ(CodeOf(forge_options_set_memory_limit(options, 1 << 20)), 0);
  EXPECT_EQ(CodeOf(forge_options_set_threads(options, 1)), 0);
  EXPECT_EQ(CodeOf(forge_options_set_autotune(options, 0)), 0);
  EXPECT_EQ(CodeOf(forge_options_set_fusion(options, 0)), 0);
  EXPECT_EQ(CodeOf(forge_options_set_precision(options, "bf16")), 0);
  forge_session* session = nullptr;
  ASSERT_EQ(CodeOf(forge_session_create_with(model_, "reference", options, &session)), 0);
  EXPECT_EQ(forge_session_output_count(session), 2u);
  EXPECT_EQ(CodeOf(forge_session_bind(session, nullptr, nullptr, 0)), 0);  // n is given
  EXPECT_EQ(forge_session_bound_output_bytes(session, 1), 24u);
  forge_session_free(session);
  session = nullptr;

  EXPECT_EQ(CodeOf(forge_options_set_memory_limit(options, 1)), 0);
  ASSERT_EQ(CodeOf(forge_session_create_with(model_, "reference", options, &session)), 0);
  std::string message;
  EXPECT_EQ(CodeOf(forge_session_bind(session, nullptr, nullptr, 0), &message), FORGE_REFUSED);
  EXPECT_NE(message.find("limit"), std::string::npos) << message;
  forge_session_free(session);
  session = nullptr;

  EXPECT_EQ(CodeOf(forge_options_set_threads(options, -1)), FORGE_USAGE);
  EXPECT_EQ(CodeOf(forge_options_set_autotune(options, -1)), FORGE_USAGE);
  EXPECT_EQ(CodeOf(forge_options_set_autotune(options, NAN)), FORGE_USAGE);
  EXPECT_EQ(CodeOf(forge_options_set_precision(options, "f8")), FORGE_USAGE);
  EXPECT_EQ(CodeOf(forge_options_set_function(options, nullptr)), FORGE_USAGE);
  EXPECT_EQ(CodeOf(forge_options_set_dim(nullptr, "n", 1)), FORGE_USAGE);
  EXPECT_EQ(CodeOf(forge_options_create(nullptr)), FORGE_USAGE);
  EXPECT_EQ(CodeOf(forge_options_set_function(options, "decode")), 0);
  EXPECT_EQ(CodeOf(forge_session_create_with(model_, "reference", options, &session), &message),
            FORGE_USAGE);
  EXPECT_NE(message.find("decode"), std::string::npos) << message;
  EXPECT_EQ(CodeOf(forge_session_create_with(model_, "reference", nullptr, &session)), FORGE_USAGE);
  EXPECT_EQ(session, nullptr);
  forge_options_free(options);
}

TEST_F(ForgeCTest, TellsMetadata) {
  EXPECT_STREQ(forge_model_metadata(model_, "labels"), "[]");
  EXPECT_EQ(forge_model_metadata(model_, "author"), nullptr);
  EXPECT_STREQ(forge_model_metadata_key(model_, 0), "labels");
  EXPECT_EQ(forge_model_metadata_key(model_, 1), nullptr);
  EXPECT_EQ(forge_interface(), FORGE_INTERFACE);
  EXPECT_NE(std::string(forge_version()).find('.'), std::string::npos);
}

TEST_F(ForgeCTest, SaysWhatIsWrongWithARun) {
  forge_tensor* x = Tensor("x", {2, 3}, {1, 2, 3, 4, 5, 6});
  forge_tensor* z = Tensor("z", {1}, {1});
  forge_tensor* y = nullptr;
  std::string message;
  EXPECT_EQ(CodeOf(forge_session_run(session_, nullptr, 0, &y, 1), &message), FORGE_USAGE);
  EXPECT_NE(message.find("'x'"), std::string::npos) << message;
  EXPECT_EQ(CodeOf(forge_session_run(session_, &z, 1, &y, 1), &message), FORGE_USAGE);
  EXPECT_NE(message.find("no input 'z'"), std::string::npos) << message;
  EXPECT_EQ(CodeOf(forge_session_run(session_, &x, 1, nullptr, 0)), FORGE_USAGE);
  EXPECT_EQ(CodeOf(forge_session_run(session_, &x, 1, &y, 0), &message), FORGE_USAGE);
  EXPECT_NE(message.find("1 outputs"), std::string::npos) << message;
  EXPECT_EQ(CodeOf(forge_session_run(session_, nullptr, 1, &y, 1)), FORGE_USAGE);
  const forge_tensor* none = nullptr;
  EXPECT_EQ(CodeOf(forge_session_run(session_, &none, 1, &y, 1)), FORGE_USAGE);
  EXPECT_EQ(CodeOf(forge_session_run(nullptr, &x, 1, &y, 1)), FORGE_USAGE);
  EXPECT_EQ(y, nullptr);
  forge_tensor_free(x);
  forge_tensor_free(z);
}

TEST_F(ForgeCTest, SaysWhatIsWrongWithATensor) {
  const int64_t shape[] = {2};
  const float data[] = {1, 2};
  forge_tensor* t = nullptr;
  EXPECT_EQ(CodeOf(forge_tensor_create("x", "f33", shape, 1, data, 8, &t)), FORGE_USAGE);
  EXPECT_EQ(CodeOf(forge_tensor_create("x", "f32", shape, 1, data, 4, &t)), FORGE_USAGE);
  EXPECT_EQ(CodeOf(forge_tensor_create("x", "f32", nullptr, 1, data, 8, &t)), FORGE_USAGE);
  EXPECT_EQ(CodeOf(forge_tensor_create("x", "f32", shape, 1, nullptr, 8, &t)), FORGE_USAGE);
  EXPECT_EQ(CodeOf(forge_tensor_create(nullptr, "f32", shape, 1, data, 8, &t)), FORGE_USAGE);
  // Refused before it is copied.
  EXPECT_EQ(CodeOf(forge_tensor_create("x", "f32", shape, 1, data, SIZE_MAX, &t)), FORGE_USAGE);
  const int64_t huge[] = {INT64_MAX, INT64_MAX};
  EXPECT_NE(CodeOf(forge_tensor_create("x", "f32", huge, 2, data, 8, &t)), 0);
  const int64_t negative[] = {-2};
  EXPECT_NE(CodeOf(forge_tensor_create("x", "f32", negative, 1, data, 8, &t)), 0);
  EXPECT_EQ(t, nullptr);
}

TEST_F(ForgeCTest, SaysWhatIsNotThere) {
  forge_model* m = nullptr;
  std::string message;
  EXPECT_EQ(CodeOf(forge_model_load("/nowhere/model.bin", &m), &message), FORGE_FILE);
  EXPECT_NE(message.find("/nowhere/model.bin"), std::string::npos) << message;
  const auto damaged = folder_.Write("damaged.bin", "no model");
  EXPECT_EQ(CodeOf(forge_model_load(damaged.c_str(), &m)), FORGE_FILE);
  EXPECT_EQ(CodeOf(forge_model_load(nullptr, &m)), FORGE_USAGE);
  EXPECT_EQ(m, nullptr);
  forge_session* s = nullptr;
  EXPECT_EQ(CodeOf(forge_session_create(model_, "metal", &s)), FORGE_USAGE);
  EXPECT_EQ(CodeOf(forge_session_create(model_, "reference:9", &s)), FORGE_DEVICE);
  EXPECT_EQ(CodeOf(forge_session_create(nullptr, "reference", &s)), FORGE_USAGE);
  EXPECT_EQ(s, nullptr);
}

TEST_F(ForgeCTest, FreesNothing) {
  forge_error_free(nullptr);
  forge_model_free(nullptr);
  forge_session_free(nullptr);
  forge_tensor_free(nullptr);
  forge_devices_free(nullptr);
  forge_options_free(nullptr);
}

TEST_F(ForgeCTest, ACancelBeforeTheRunDoesNothing) {
  forge_session_cancel(session_);
  forge_tensor* x = Tensor("x", {1, 3}, {1, 2, 3});
  forge_tensor* y = nullptr;
  EXPECT_EQ(CodeOf(forge_session_run(session_, &x, 1, &y, 1)), 0);
  forge_tensor_free(x);
  forge_tensor_free(y);
}

}  // namespace
}  // namespace forge
