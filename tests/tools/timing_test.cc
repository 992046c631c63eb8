// SPDX-License-Identifier: Apache-2.0
// How fast, where the time goes, and whether it is what was expected: forge-run and forge-bench.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <set>

#include "formats/arrays/npy.h"
#include "tests/support/onnx_model.h"
#include "tests/support/status_matchers.h"
#include "tests/tools/shell.h"

namespace forge {
namespace {

using namespace testing;  // NOLINT: how programs are run

std::string JsonRun() {
  return "forge-run --json --device reference " + kModel + " --input image=" + kPicture + " ";
}

nlohmann::json Ran(const std::string& command) {
  const Outcome o = Shell(command);
  EXPECT_EQ(o.status, 0) << o.err;
  return nlohmann::json::parse(o.out, nullptr, false);
}

TEST(TimingTest, RanksLatencies) {
  // Of so many runs one is undisturbed on a busy machine, too.
  const nlohmann::json json = Ran(JsonRun() + "--repeat 100");
  const nlohmann::json& ms = json["latency_ms"];
  EXPECT_EQ(ms["runs"], 100);
  EXPECT_LE(ms["min"], ms["median"]);
  EXPECT_LE(ms["median"], ms["p95"]);
  EXPECT_LE(ms["p95"], ms["p99"]);
  EXPECT_GT(json["runs_per_second"], 0);
  // The run that compiled is not among them.
  EXPECT_GE(json["first_ms"], ms["min"]);
}

// A run more would change the states of a model that has some.
TEST(TimingTest, WarmsUpOnlyWhereRunsAreTimed) {
  TempFolder folder;
  const auto warmup = [](const std::string& options) {
    return Ran(JsonRun() + options)["latency_ms"]["warmup"].get<int>();
  };
  EXPECT_EQ(warmup(""), 0);
  EXPECT_EQ(warmup("--repeat 1"), 1);
  EXPECT_EQ(warmup("--duration 0.01"), 1);
  EXPECT_EQ(warmup("--profile " + Quoted(folder / "trace.json")), 1);
  EXPECT_EQ(warmup("--repeat 1 --warmup 0"), 0);
  EXPECT_EQ(warmup("--warmup 3"), 3);
}

TEST(TimingTest, RunsForATime) {
  const nlohmann::json json = Ran(JsonRun() + "--duration 0.3");
  EXPECT_GT(json["latency_ms"]["runs"], 1);
  const double seconds =
      json["latency_ms"]["runs"].get<double>() / json["runs_per_second"].get<double>();
  EXPECT_GE(seconds, 0.3);
  EXPECT_EQ(Ran(JsonRun() + "--duration 0.000001")["latency_ms"]["runs"], 1);
}

TEST(TimingTest, RunsStreamsAtOnce) {
  const nlohmann::json one = Ran(JsonRun() + "--print"),
                       three = Ran(JsonRun() + "--print --streams 3 --repeat 4");
  EXPECT_EQ(three["streams"], 3);
  EXPECT_EQ(three["latency_ms"]["runs"], 12);
  EXPECT_EQ(three["outputs"], one["outputs"]);
}

TEST(TimingTest, TimesOpsAndSteps) {
  const nlohmann::json json = Ran(JsonRun() + "--repeat 2 --time-by-op --explain");
  double share = 0, by_op = 0, by_step = 0;
  int steps = 0;
  for (const auto& row : json["time_by_op"]) {
    share += row["share"].get<double>();
    by_op += row["ms"].get<double>();
    steps += row["steps"].get<int>();
  }
  EXPECT_NEAR(share, 1, 1e-9);
  std::set<std::string> labels;
  for (const auto& step : json["step_times"]) {
    by_step += step["ms"].get<double>();
    labels.insert(step["label"]);
  }
  EXPECT_NEAR(by_op, by_step, 1e-6 * by_step);
  EXPECT_EQ(steps, static_cast<int>(json["step_times"].size()));
  EXPECT_TRUE(labels.contains("pool2 (MaxPool)")) << json["step_times"].dump();
  ASSERT_EQ(json["plan"]["steps"].size(), json["step_times"].size());
  for (size_t i = 0; i < json["plan"]["steps"].size(); ++i)
    for (const char* key : {"number", "label", "op", "kernel", "types"})
      EXPECT_EQ(json["plan"]["steps"][i][key], json["step_times"][i][key]);
  const Outcome text = Shell("forge-run --device reference " + kModel +
                             " --input image=" + kPicture + " --time-by-op");
  EXPECT_THAT(text.out, ::testing::ContainsRegex("conv +3 +[0-9.]+ +[0-9.]+ %"));
  EXPECT_THAT(text.out, ::testing::HasSubstr("the slowest steps:"));
}

TEST(TimingTest, FusesOnlyWhereItMay) {
  if (!IsHere("cpu")) GTEST_SKIP() << "there is no CPU device";
  const std::string run = "forge-run --json --print --explain --device cpu " + kModel +
                          " --input image=" + kPicture + " ";
  const nlohmann::json fused = Ran(run), apart = Ran(run + "--no-fuse");
  const auto regions = [](const nlohmann::json& json) {
    int n = 0;
    for (const auto& s : json["plan"]["steps"])
      n += s["op"].get<std::string>().find(" + ") != std::string::npos;
    return n;
  };
  EXPECT_GE(regions(fused), 3);
  EXPECT_EQ(regions(apart), 0);
  EXPECT_GT(apart["steps"], fused["steps"]);
  EXPECT_NEAR(apart["outputs"][0]["summary"]["max"].get<double>(),
              fused["outputs"][0]["summary"]["max"].get<double>(), 1e-5);
}

TEST(ExpectTest, ComparesWithFilesUnderTolerances) {
  TempFolder folder;
  const std::string run = "forge-run --device reference " + kModel + " --input image=" + kPicture;
  const std::string file = folder / "want/probabilities.npy";
  ASSERT_EQ(Shell(run + " --output-dir " + Quoted(folder / "want")).status, 0);
  const std::string expect = run + " --expect " + Quoted(folder / "want");
  const Outcome same = Shell(expect + " --rtol 0 --atol 0");
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_THAT(same.out, ::testing::HasSubstr("as expected"));

  FORGE_ASSERT_OK_AND_ASSIGN(ir::HostValue want, ReadNpy(file));
  want.Set(3, want.f64(3) + 0.01);
  ASSERT_THAT(WriteNpy(file, want), Succeeds());
  EXPECT_EQ(Shell(expect + " --atol 0.02").status, 0);
  ExpectFailure(expect + " --atol 0.001", "1 of 10 elements differ");
  ExpectFailure(expect, "element 3 is");
  const Outcome json = Shell("forge-run --json" + expect.substr(9));
  EXPECT_EQ(json.status, 1);
  EXPECT_EQ(nlohmann::json::parse(json.out)["expect"]["outputs"][0]["outside"], 1);

  want.Set(3, NAN);
  ASSERT_THAT(WriteNpy(file, want), Succeeds());
  ExpectFailure(expect + " --atol 1e9", "element 3 is");
  ASSERT_THAT(WriteNpy(file, FloatTensor({10}, std::vector<float>(10))), Succeeds());
  ExpectFailure(expect + " --atol 1e9", "f32[1, 10]");
  std::filesystem::remove(file);
  EXPECT_EQ(Shell(expect).status, 3);
}

TEST(ForgeBenchTest, TimesAModel) {
  const nlohmann::json rows =
      Ran("forge-bench --json --device reference " + kModel + " --dim N=2 --repeat 3 --streams 2");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["latency_ms"]["runs"], 6);
  EXPECT_LE(rows[0]["min_us"], rows[0]["time_us"]);
  EXPECT_GT(rows[0]["runs_per_second"], 0);
  EXPECT_EQ(rows[0]["device"], "reference:0");
  const Outcome text = Shell("forge-bench --device reference " + kModel + " --dim N=1 --repeat 2");
  EXPECT_THAT(text.out,
              ::testing::ContainsRegex("fashion.bin +reference:0 +[0-9.]+ +[0-9.]+ +[0-9.]+"));
  ExpectError("forge-bench --device reference " + kModel, 2, "give --dim N=N");
}

TEST(ForgeBenchTest, TimesCasesThatAreGiven) {
  const auto rows = Ran(
      "forge-bench ops --json --device cpu --case 'matmul{transpose_b=true}(f32[8,16], f32[4,16])' "
      "--case 'gather(f32[9,4], i64[3] in 0..8)'");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["name"], "matmul{transpose_b = true}(f32[8, 16], f32[4, 16])");
  EXPECT_GT(rows[0]["time_us"].get<double>(), 0);
  const auto refuses = [](const std::string& text, const std::string& why) {
    ExpectError("forge-bench ops --device cpu --case '" + text + "'", 2, why);
  };
  refuses("matmul", "is no case such as");
  refuses("matml(f32[2])", "'matml' is no op");
  refuses("matmul(f32[2,3], f32[4,5])", "a has 3 columns and b 4 rows");
  refuses("softmax{axis = 1(f32[2,3])", "");
  refuses("softmax(f32[2,", "is no case such as");
  ExpectError("forge-bench ops --case 'relu(f32[2])' --filter relu", 2, "--filter");
}

TEST(SlowForgeBenchTest, MeasuresPeaks) {
  if (!IsHere("cpu")) GTEST_SKIP() << "there is no CPU device";
  const nlohmann::json rows = Ran("forge-bench --json peak --device cpu");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["device"], "cpu:0");
  // What any machine of the last 15 years exceeds, and none reaches.
  EXPECT_GT(rows[0]["fma_gflops"], 0.1);
  EXPECT_LT(rows[0]["fma_gflops"], 1e6);
  for (const char* rate : {"read_gbps", "copy_gbps"}) {
    EXPECT_GT(rows[0][rate], 0.01) << rate;
    EXPECT_LT(rows[0][rate], 1e5) << rate;
  }
}

}  // namespace
}  // namespace forge
