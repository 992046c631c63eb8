// SPDX-License-Identifier: Apache-2.0
// What the host computes between the parts of a run: strings, sequences, optionals, boxes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/model_bin/model_bin.h"
#include "runtime/backends.h"
#include "runtime/report.h"
#include "runtime/session.h"
#include "tests/support/onnx_model.h"
#include "tests/support/oracle.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_names.h"

namespace forge {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Strings = std::vector<std::string>;

absl::StatusOr<std::vector<NamedTensor>> RunOnDevice(std::unique_ptr<ir::Module> module,
                                                     const std::string& device,
                                                     std::span<const NamedTensor> in) {
  FORGE_ASSIGN_OR_RETURN(DeviceRef opened, OpenDevice(device, {}));
  FORGE_ASSIGN_OR_RETURN(auto session,
                         Session::Create(std::make_shared<const Model>(std::move(module)), opened));
  return session->Run(in);
}

absl::StatusOr<std::vector<NamedTensor>> RunOnDevice(const OnnxModel& m, const std::string& device,
                                                     std::span<const NamedTensor> in) {
  FORGE_ASSIGN_OR_RETURN(auto module, m.Import());
  return RunOnDevice(std::move(module), device, in);
}

std::vector<double> NumbersIn(const ir::HostValue& v) {
  std::vector<double> out;
  for (int64_t i = 0; i < v.elements(); ++i) out.push_back(v.f64(i));
  return out;
}

Strings StringsIn(const ir::HostValue& v) {
  Strings out;
  for (int64_t i = 0; i < v.elements(); ++i) out.emplace_back(v.string(i));
  return out;
}

ir::HostValue StringTensor(std::vector<int64_t> shape, const Strings& all) {
  return *ir::HostValue::Strings(shape, all);
}

void AddSequenceInput(OnnxModel& m, const std::string& name, int32_t type) {
  onnx::ValueInfoProto& input = *m.graph().add_input();
  input.set_name(name);
  input.mutable_type()
      ->mutable_sequence_type()
      ->mutable_elem_type()
      ->mutable_tensor_type()
      ->set_elem_type(type);
}

class SessionHostStepsTest : public ::testing::TestWithParam<std::string> {};

// y = relu(s[i]), all = s with y at its end
OnnxModel Sequences() {
  OnnxModel m;
  AddSequenceInput(m, "s", onnx::TensorProto::FLOAT);
  m.Input("i", {}, onnx::TensorProto::INT64).Output("y").Output("all");
  m.Node("SequenceAt", {"s", "i"}, {"item"});
  m.Node("Relu", {"item"}, {"y"});
  m.Node("SequenceInsert", {"s", "y"}, {"all"});
  return m;
}

std::vector<NamedTensor> SequenceInputs(int64_t at) {
  std::vector<ir::HostValue> items = {FloatTensor({2}, {1, -2}), FloatTensor({3}, {-1, 5, 6})};
  return {{"s", ir::HostValue::Sequence(ir::Type::Unranked(DType::kF32), std::move(items))},
          {"i", IntTensor({}, {at})}};
}

TEST_P(SessionHostStepsTest, AnItemOfASequenceIsComputedWith) {
  for (const auto& [at, want] :
       {std::pair<int64_t, std::vector<double>>{0, {1, 0}}, {-1, {0, 5, 6}}}) {
    FORGE_ASSERT_OK_AND_ASSIGN(auto out, RunOnDevice(Sequences(), GetParam(), SequenceInputs(at)));
    EXPECT_EQ(NumbersIn(out[0].value), want);
    ASSERT_EQ(out[1].value.items().size(), 3U);
    EXPECT_EQ(NumbersIn(out[1].value.items()[2]), want);
  }
}

TEST_P(SessionHostStepsTest, APositionOutsideOfASequenceIsAnErrorOfItsNode) {
  for (const int64_t at : {int64_t{2}, int64_t{-3}, INT64_MIN, INT64_MAX}) {
    const absl::Status s = RunOnDevice(Sequences(), GetParam(), SequenceInputs(at)).status();
    EXPECT_THAT(Message(s), HasSubstr("outside of a sequence")) << at;
    EXPECT_THAT(Message(s), HasSubstr("SequenceAt_0 (SequenceAt)"));
  }
}

TEST_P(SessionHostStepsTest, ATensorIsNoSequence) {
  std::vector<NamedTensor> in = SequenceInputs(0);
  in[0].value = FloatTensor({2}, {1, 2});
  EXPECT_FALSE(RunOnDevice(Sequences(), GetParam(), in).ok());
  in = SequenceInputs(0);
  std::swap(in[0].value, in[1].value);
  EXPECT_FALSE(RunOnDevice(Sequences(), GetParam(), in).ok());
}

// Strings: joined, moved, compared; the comparison chooses among numbers on the device.
OnnxModel Text() {
  OnnxModel m(21);
  m.Input("a", {"n"}, onnx::TensorProto::STRING).Input("x", {"n"});
  m.Output("back").Output("y");
  onnx::TensorProto& end = m.Initializer("end", onnx::TensorProto::STRING, {});
  end.add_string_data("!");
  onnx::TensorProto& hit = m.Initializer("hit", onnx::TensorProto::STRING, {1});
  hit.add_string_data("tea!");
  m.Ints("order", {2}, {1, 0});
  m.Floats("zero", {}, {0});
  m.Node("StringConcat", {"a", "end"}, {"joined"});
  m.Node("Gather", {"joined", "order"}, {"back"});
  m.Node("Equal", {"joined", "hit"}, {"is"});
  m.Node("Where", {"is", "x", "zero"}, {"y"});
  return m;
}

const std::vector<NamedTensor>& TextInputs() {
  static const std::vector<NamedTensor> in = {{"a", StringTensor({2}, {"tea", "größer"})},
                                              {"x", FloatTensor({2}, {7, 8})}};
  return in;
}

TEST_P(SessionHostStepsTest, StringsAreJoinedMovedAndCompared) {
  FORGE_ASSERT_OK_AND_ASSIGN(auto out, RunOnDevice(Text(), GetParam(), TextInputs()));
  EXPECT_THAT(StringsIn(out[0].value), ElementsAre("größer!", "tea!"));
  EXPECT_THAT(NumbersIn(out[1].value), ElementsAre(7, 0));
}

TEST_P(SessionHostStepsTest, AStoredModelKeepsItsStrings) {
  FORGE_ASSERT_OK_AND_ASSIGN(auto module, Text().Import());
  const TempFolder folder;
  const absl::Status written = WriteModel(*module, folder / "text.bin");
  ASSERT_TRUE(written.ok()) << written;
  FORGE_ASSERT_OK_AND_ASSIGN(auto model, Model::Load(folder / "text.bin"));
  FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef device, OpenDevice(GetParam(), {}));
  FORGE_ASSERT_OK_AND_ASSIGN(auto session, Session::Create(model, device));
  FORGE_ASSERT_OK_AND_ASSIGN(auto out, session->Run(TextInputs()));
  EXPECT_THAT(StringsIn(out[0].value), ElementsAre("größer!", "tea!"));
}

TEST_P(SessionHostStepsTest, ExplainNamesTheStepsOfTheHost) {
  FORGE_ASSERT_OK_AND_ASSIGN(auto module, Text().Import());
  FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef device, OpenDevice(GetParam(), {}));
  FORGE_ASSERT_OK_AND_ASSIGN(
      auto session, Session::Create(std::make_shared<const Model>(std::move(module)), device));
  ASSERT_TRUE(session->Run(TextInputs()).ok());
  EXPECT_THAT(Explain(*session), HasSubstr("string_concat"));
}

TEST_P(SessionHostStepsTest, AnOptionalIsAskedWhenItIsGiven) {
  OnnxModel m(18);
  onnx::ValueInfoProto& input = *m.graph().add_input();
  input.set_name("o");
  input.mutable_type()
      ->mutable_optional_type()
      ->mutable_elem_type()
      ->mutable_tensor_type()
      ->set_elem_type(onnx::TensorProto::FLOAT);
  m.Output("has");
  m.Node("OptionalHasElement", {"o"}, {"has"});
  const NamedTensor nothing[] = {{"o", ir::HostValue::Nothing(ir::Type::Unknown())}};
  FORGE_ASSERT_OK_AND_ASSIGN(auto out, RunOnDevice(m, GetParam(), nothing));
  EXPECT_EQ(out[0].value.i64(0), 0);
  const NamedTensor given[] = {{"o", FloatTensor({2}, {1, 2})}};
  FORGE_ASSERT_OK_AND_ASSIGN(out, RunOnDevice(m, GetParam(), given));
  EXPECT_EQ(out[0].value.i64(0), 1);
}

TEST_P(SessionHostStepsTest, OverlappingBoxesGoAndTheRestIsComputedWith) {
  OnnxModel m(11);
  m.Input("boxes", {"1", "n", "4"}).Input("scores", {"1", "1", "n"}).Output("last");
  m.Ints("most", {}, {10}).Floats("overlap", {}, {0.5F}).Ints("two", {}, {2});
  m.Node("NonMaxSuppression", {"boxes", "scores", "most", "overlap"}, {"rows"});
  Set(m.Node("Gather", {"rows", "two"}, {"last"}), "axis", int64_t{1});
  const NamedTensor in[] = {
      {"boxes", FloatTensor({1, 3, 4}, {0, 0, 1, 1, 0, 0.1F, 1, 1.1F, 0, 5, 1, 6})},
      {"scores", FloatTensor({1, 1, 3}, {0.5F, 0.9F, 0.7F})}};
  FORGE_ASSERT_OK_AND_ASSIGN(auto out, RunOnDevice(m, GetParam(), in));
  EXPECT_THAT(NumbersIn(out[0].value), ElementsAre(1, 2));
}

TEST_P(SessionHostStepsTest, EachDeviceDrawsTheSameNumbers) {
  OnnxModel m(22);
  m.Output("u").Output("n");
  for (const char* op : {"RandomUniform", "RandomNormal"}) {
    onnx::NodeProto& node = m.Node(op, {}, {op == std::string("RandomUniform") ? "u" : "n"});
    Set(node, "shape", std::vector<int64_t>{64, 64});
    Set(node, "seed", 3.0F);
  }
  FORGE_ASSERT_OK_AND_ASSIGN(const auto want, RunOnDevice(m, "reference", {}));
  FORGE_ASSERT_OK_AND_ASSIGN(const auto out, RunOnDevice(m, GetParam(), {}));
  EXPECT_EQ(NumbersIn(out[0].value), NumbersIn(want[0].value));
  double sum = 0, squares = 0;
  for (const double v : NumbersIn(out[1].value)) sum += v, squares += v * v;
  EXPECT_NEAR(sum / 4096, 0, 0.06);  // four deviations of the mean
  EXPECT_NEAR(squares / 4096, 1, 0.1);
}

TEST_P(SessionHostStepsTest, WhatDropoutKeepsIsScaled) {
  OnnxModel m(22);
  m.Input("x", {"1000"}).Output("y").Output("mask");
  m.Floats("ratio", {}, {0.25F});
  m.Initializer("training", onnx::TensorProto::BOOL, {}).add_int32_data(1);
  m.Node("Dropout", {"x", "ratio", "training"}, {"y", "mask"});
  const NamedTensor in[] = {{"x", FloatTensor({1000}, std::vector<float>(1000, 3))}};
  FORGE_ASSERT_OK_AND_ASSIGN(const auto out, RunOnDevice(m, GetParam(), in));
  int kept = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    const bool keeps = out[1].value.i64(i) != 0;
    kept += keeps;
    EXPECT_FLOAT_EQ(static_cast<float>(out[0].value.f64(i)), keeps ? 4 : 0);
  }
  EXPECT_NEAR(kept, 750, 60);
}

INSTANTIATE_TEST_SUITE_P(AllDevices, SessionHostStepsTest, ::testing::ValuesIn(Devices()),
                         NameOfParameter);

}  // namespace
}  // namespace forge
