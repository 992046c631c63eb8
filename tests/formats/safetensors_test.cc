// SPDX-License-Identifier: Apache-2.0
#include "formats/arrays/safetensors.h"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>

#include "formats/onnx/replace_weights.h"
#include "tests/support/onnx_model.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace forge {
namespace {

using ::testing::HasSubstr;

Bytes FileOf(const std::string& header, const std::string& data) {
  std::vector<uint8_t> out(8);
  for (int i = 0; i < 8; ++i) out[i] = static_cast<uint8_t>(header.size() >> (8 * i));
  out.insert(out.end(), header.begin(), header.end());
  out.insert(out.end(), data.begin(), data.end());
  return Bytes(std::move(out));
}

std::string ErrorOf(const Bytes& file) {
  const auto r = ParseSafetensors(file, "w.safetensors");
  EXPECT_EQ(r.status().code(), absl::StatusCode::kDataLoss);
  return std::string(Message(r.status()));
}

TEST(SafetensorsTest, ReadsWhatItWrites) {
  const TempFolder folder;
  Safetensors in{{{"b.weight", FloatTensor({2, 2}, {1, 2, 3, 4})},
                  {"a", IntTensor({}, {7})},
                  {"empty", FloatTensor({0, 3}, {})}},
                 {{"step", "12"}}};
  ASSERT_TRUE(WriteSafetensors(folder / "w.safetensors", in).ok());
  FORGE_ASSERT_OK_AND_ASSIGN(const Safetensors out, ReadSafetensors(folder / "w.safetensors"));
  EXPECT_EQ(out.metadata, in.metadata);
  ASSERT_EQ(out.tensors.size(), 3U);
  EXPECT_EQ(out.tensors[0].first, "b.weight");
  EXPECT_EQ(out.tensors[0].second.type().ToText(), "f32[2, 2]");
  EXPECT_EQ(out.tensors[0].second.f64(3), 4);
}

TEST(SafetensorsTest, RefusesEveryTruncation) {
  const TempFolder folder;
  const Safetensors in{{{"a", FloatTensor({3}, {1, 2, 3})}}};
  ASSERT_TRUE(WriteSafetensors(folder / "w", in).ok());
  std::ifstream file(folder / "w", std::ios::binary);
  const std::vector<uint8_t> whole{std::istreambuf_iterator<char>(file), {}};
  for (size_t n = 0; n < whole.size(); ++n)
    EXPECT_NE(ErrorOf(Bytes({whole.begin(), whole.begin() + static_cast<int64_t>(n)})), "") << n;
}

TEST(SafetensorsTest, NamesWhatIsWrong) {
  EXPECT_THAT(ErrorOf(FileOf("[]", "")), HasSubstr("not a JSON object"));
  EXPECT_THAT(ErrorOf(FileOf(R"({"a":{"dtype":"F32"}})", "")), HasSubstr("tensor 'a': it needs"));
  EXPECT_THAT(ErrorOf(FileOf(R"({"a":{"dtype":"X","shape":[],"data_offsets":[0,4]}})", "abcd")),
              HasSubstr("dtype X"));
  EXPECT_THAT(ErrorOf(FileOf(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,4]}})", "abcd")),
              HasSubstr("needs 3 bytes"));
  EXPECT_THAT(ErrorOf(FileOf(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},
                                 "b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
                             "abcdef")),
              HasSubstr("'b' begins at byte 2"));
  EXPECT_THAT(
      ErrorOf(FileOf(R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})",
                     "")),
      HasSubstr("shape"));
  EXPECT_THAT(ErrorOf(FileOf("{}", "x")), HasSubstr("1 bytes belong to no tensor"));
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  for (const char* field : {"dtype", "shape", "data_offsets"})
    EXPECT_THAT(ErrorOf(FileOf(
                    fmt::format(R"({{"a":{{"dtype":"U8","shape":[],"data_offsets":[],"{}":{}}}}})",
                                field, deep),
                    "")),
                HasSubstr("nests values deeper"));
}

TEST(ReplaceOnnxWeightsTest, ReplacesByNameAndKeepsTheRest) {
  const TempFolder folder;
  OnnxModel model;
  model.Input("x", {"2"}).Output("y");
  model.Floats("w", {2}, {1, 2}).Floats("b", {2}, {10, 20});
  model.Node("Mul", {"x", "w"}, {"h"});
  model.Node("Add", {"h", "b"}, {"y"});
  std::ofstream(folder / "a.onnx", std::ios::binary) << model.File();
  ASSERT_TRUE(
      ReplaceOnnxWeights(folder / "a.onnx", {{"w", FloatTensor({2}, {3, 4})}}, folder / "b.onnx")
          .ok());
  std::ifstream file(folder / "b.onnx", std::ios::binary);
  onnx::ModelProto out;
  ASSERT_TRUE(out.ParseFromIstream(&file));
  OnnxModel again;
  again.proto() = out;
  FORGE_ASSERT_OK_AND_ASSIGN(const auto results, ImportAndRun(again, {FloatTensor({2}, {1, 1})}));
  EXPECT_EQ(results[0].f64(0), 13);
  EXPECT_EQ(results[0].f64(1), 24);
  const auto wrong = [&](const char* name, ir::HostValue v) {
    return std::string(
        Message(ReplaceOnnxWeights(folder / "a.onnx", {{name, std::move(v)}}, folder / "c.onnx")));
  };
  EXPECT_THAT(wrong("z", FloatTensor({2}, {3, 4})), HasSubstr("no initialiser 'z'"));
  EXPECT_THAT(wrong("w", FloatTensor({1}, {3})), HasSubstr("initialiser 'w' is not f32[1]"));
  EXPECT_FALSE(std::filesystem::exists(folder / "c.onnx"));
}

}  // namespace
}  // namespace forge
