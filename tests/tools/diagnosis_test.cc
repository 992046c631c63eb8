// SPDX-License-Identifier: Apache-2.0
// Why are the answers wrong? The tools that tell, on devices made wrong for the purpose.
#include <nlohmann/json.hpp>
#include <set>

#include "formats/arrays/npy.h"
#include "tests/support/onnx_model.h"
#include "tests/support/status_matchers.h"
#include "tests/tools/shell.h"

namespace forge {
namespace {

using namespace testing;  // NOLINT: how programs are run

struct PlannedStep {
  std::string label, kernel;
  int number;
};

nlohmann::json Trace(const std::string& device) {
  TempFolder folder;
  const std::filesystem::path file = folder / "trace.json";
  const Outcome o = Shell("forge-run --device " + device + " " + kModel +
                          " --input image=" + kPicture + " --warmup 1 --profile " + Quoted(file));
  EXPECT_EQ(o.status, 0) << o.err;
  return nlohmann::json::parse(Slurp(file), nullptr, false);
}

std::vector<PlannedStep> StepsOn(const std::string& device) {
  std::vector<PlannedStep> steps;
  const nlohmann::json trace = Trace(device);
  for (const auto& e : trace["traceEvents"])
    if (e["ph"] == "X" && e.contains("args") && e["args"]["kernel"] != "copy")
      steps.push_back({e["name"], e["args"]["kernel"], e["args"]["step"]});
  return steps;
}

class EveryDeviceTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!IsHere(GetParam())) GTEST_SKIP() << "there is no " << GetParam() << " device";
  }
  std::string Run(const std::string& options = "") const {
    return std::string("forge-run --device ") + GetParam() + " " + kModel +
           " --input image=" + kPicture + " " + options;
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, EveryDeviceTest, ::testing::Values("reference", "cpu", "vulkan"));

TEST_P(EveryDeviceTest, CompareStepsNamesTheCorruptedKernel) {
  const std::vector<PlannedStep> steps = StepsOn(GetParam());
  ASSERT_GT(steps.size(), 5u);
  for (const PlannedStep& step : {steps[1], steps[steps.size() / 2], steps.back()}) {
    const Outcome o = Shell(Run("--compare reference --steps"),
                            fmt::format("FORGE_FAULT='{}/{}' ", GetParam(), step.label));
    // Against itself the wrong device still differs from its own steps.
    const std::string sentence = fmt::format("the first step that differs is {} ({}, {})",
                                             step.number, step.label, step.kernel);
    EXPECT_NE(o.out.find(sentence), std::string::npos) << sentence << "\n" << o.out << o.err;
    if (std::string_view(GetParam()) == "reference") continue;
    EXPECT_EQ(o.status, 1);
    EXPECT_NE(o.err.find(sentence), std::string::npos) << o.err;
  }
}

TEST_P(EveryDeviceTest, CompareStepsFindsNothingWhereNothingIsWrong) {
  const Outcome o = Shell(Run("--compare reference --steps"));
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_NE(o.out.find("every step by itself is within bounds"), std::string::npos) << o.out;
}

TEST_P(EveryDeviceTest, GivesInnerValues) {
  TempFolder folder;
  const Outcome o =
      Shell(Run("--output pool2 --output probabilities --output-dir " + Quoted(folder / "out")));
  EXPECT_EQ(o.status, 0) << o.err;
  FORGE_ASSERT_OK_AND_ASSIGN(const ir::HostValue inner, ReadNpy(folder / "out/pool2.npy"));
  EXPECT_EQ(inner.type().ToText(), "f32[1, 32, 7, 7]");
  TempFolder other;
  ASSERT_EQ(Shell("forge-run --device reference " + kModel + " --input image=" + kPicture +
                  " --output pool2 --output-dir " + Quoted(other.path()))
                .status,
            0);
  FORGE_ASSERT_OK_AND_ASSIGN(const ir::HostValue expected, ReadNpy(other / "pool2.npy"));
  double error = 0, norm = 0;
  for (int64_t i = 0; i < expected.elements(); ++i) {
    error += std::pow(inner.f64(i) - expected.f64(i), 2);
    norm += std::pow(expected.f64(i), 2);
  }
  EXPECT_LE(error, 1e-8 * norm);
}

TEST_P(EveryDeviceTest, DumpsEveryPassAndEveryKernel) {
  TempFolder folder;
  ASSERT_EQ(Shell(Run("--dump " + Quoted(folder / "dump"))).status, 0);
  std::set<std::string> passes, kernels;
  for (const auto& e : std::filesystem::directory_iterator(folder / "dump")) {
    const std::string name = e.path().filename();
    EXPECT_GT(e.file_size(), 0u) << name;
    (name.starts_with("pass_") ? passes : kernels).insert(name);
  }
  EXPECT_GE(passes.size(), 9u);
  EXPECT_NE(passes.begin()->find("import"), std::string::npos);
  const bool spirv = std::any_of(kernels.begin(), kernels.end(),
                                 [](const std::string& k) { return k.ends_with(".spv"); });
  EXPECT_EQ(spirv, std::string_view(GetParam()) == "vulkan");
}

// What the Trace Event Format asks of the events we write, and what a viewer needs to nest them.
void ExpectTraceEvents(const nlohmann::json& trace) {
  ASSERT_TRUE(trace.is_object() && trace.contains("traceEvents"));
  EXPECT_TRUE(trace["displayTimeUnit"] == "ms" || trace["displayTimeUnit"] == "ns");
  std::map<int, std::string> tracks;
  std::map<int, double> busy_until;
  for (const auto& e : trace["traceEvents"]) {
    SCOPED_TRACE(e.dump());
    ASSERT_TRUE(e["name"].is_string() && e["ph"].is_string() && e["pid"].is_number_integer());
    if (e["ph"] == "M") {
      ASSERT_TRUE(e["name"] == "process_name" || e["name"] == "thread_name");
      ASSERT_TRUE(e["args"]["name"].is_string());
      if (e["name"] == "thread_name") tracks[e["tid"].get<int>()] = e["args"]["name"];
      continue;
    }
    ASSERT_EQ(e["ph"], "X");
    ASSERT_TRUE(e["ts"].is_number() && e["dur"].is_number() && e["tid"].is_number_integer());
    ASSERT_TRUE(!e.contains("args") || e["args"].is_object());
    const int track = e["tid"];
    EXPECT_TRUE(tracks.contains(track));
    const double begin = e["ts"], end = begin + e["dur"].get<double>();
    EXPECT_GE(end, begin);
    EXPECT_GE(begin, busy_until[track] - 1e-3);
    busy_until[track] = end;
  }
  std::set<std::string> names;
  for (const auto& [track, name] : tracks) names.insert(name);
  EXPECT_EQ(names.size(), 2u);
  EXPECT_TRUE(names.contains("host"));
}

TEST_P(EveryDeviceTest, ProfilesInTheTraceEventFormat) {
  const nlohmann::json trace = Trace(GetParam());
  ExpectTraceEvents(trace);
  std::vector<std::string> host;
  for (const auto& e : trace["traceEvents"])
    if (e["ph"] == "X" && !e.contains("args")) host.push_back(e["name"]);
  EXPECT_EQ(host,
            (std::vector<std::string>{"load the model", "open the device", "passes and weights",
                                      "read inputs", "bind and compile", "run"}));
}

TEST(ForgeRunTest, NamesClassesByConfidencesOnly) {
  const std::string run = "forge-run --device reference " + kModel + " --input image=" + kPicture;
  EXPECT_NE(Shell(run).out.find("bag"), std::string::npos);
  const std::string scores = Shell(run + " --output scores").out;
  EXPECT_EQ(scores.find('%'), std::string::npos) << scores;
  EXPECT_NE(scores.find("scores: f32[1, 10]"), std::string::npos) << scores;
}

TEST(FaultTest, KeepsTheSlicesOfATrace) {
  const nlohmann::json whole = Trace("reference");
  ASSERT_EQ(::setenv("FORGE_FAULT", "reference/pool2 (MaxPool)", 1), 0);
  const nlohmann::json faulty = Trace("reference");
  ASSERT_EQ(::unsetenv("FORGE_FAULT"), 0);
  ExpectTraceEvents(faulty);
  EXPECT_EQ(whole["traceEvents"].size(), faulty["traceEvents"].size());
}

TEST(FaultTest, OtherBackendsAndLabelsAreLeftAlone) {
  const std::string run =
      "forge-run --print --device reference " + kModel + " --input image=" + kPicture;
  const std::string whole = Shell(run).out;
  EXPECT_EQ(Shell(run, "FORGE_FAULT='vulkan/pool2 (MaxPool)' ").out, whole);
  EXPECT_EQ(Shell(run, "FORGE_FAULT='reference/no such step' ").out, whole);
  EXPECT_NE(Shell(run, "FORGE_FAULT='reference/pool2 (MaxPool)' ").out, whole);
  const Outcome o = Shell(run, "FORGE_FAULT=reference ");
  EXPECT_EQ(o.status, 2);
  EXPECT_NE(o.err.find("BACKEND/LABEL"), std::string::npos) << o.err;
}

TEST(CheckFiniteTest, NamesTheStepTheValueAndThePlace) {
  TempFolder folder;
  OnnxModel model;
  model.Input("x", {"2", "3"}).Output("y");
  model.Node("Sub", {"x", "one"}, {"less"}).set_name("less_one");
  model.Floats("one", {1}, {1});
  model.Node("Log", {"less"}, {"log"}).set_name("the_log");
  model.Node("Add", {"log", "one"}, {"y"}).set_name("after");
  Write(folder / "log.onnx", model.File());
  ASSERT_THAT(WriteNpy(folder / "x.npy", FloatTensor({2, 3}, {2, 3, 4, 5, -6, 7})), Succeeds());
  const std::string run = "forge-run --device reference " + Quoted(folder / "log.onnx") +
                          " --input x=" + Quoted(folder / "x.npy");
  EXPECT_EQ(Shell(run).status, 0);  // NaN is data
  const Outcome o = Shell(run + " --check-finite");
  EXPECT_EQ(o.status, 1);
  for (const char* part : {"the_log", "nan", "element 4", "f32[2, 3]"})
    EXPECT_NE(o.err.find(part), std::string::npos) << part << ": " << o.err;
  EXPECT_EQ(
      Shell("forge-run --check-finite --device reference " + kModel + " --input image=" + kPicture)
          .status,
      0);
}

TEST(ForgeParityTest, ComparesEveryPairAndFailsOnABreach) {
  std::vector<std::string> devices = {"reference"};
  for (const char* d : {"cpu", "vulkan"})
    if (IsHere(d)) devices.emplace_back(d);
  const std::string parity = "forge-parity " + kModel + " --dim N=2 --devices " +
                             fmt::format("{}", fmt::join(devices, ","));
  const Outcome agree = Shell(parity + " --json");
  EXPECT_EQ(agree.status, 0) << agree.err;
  const auto pairs = nlohmann::json::parse(agree.out, nullptr, false);
  ASSERT_EQ(pairs.size(), devices.size() * (devices.size() - 1) / 2);
  std::set<std::pair<std::string, std::string>> seen;
  for (const auto& p : pairs) {
    EXPECT_EQ(p["within"], true) << p.dump();
    seen.emplace(p["a"], p["b"]);
  }
  EXPECT_EQ(seen.size(), pairs.size());
  if (devices.size() < 2) GTEST_SKIP() << "there is only the reference";
  const Outcome breach = Shell(parity, "FORGE_FAULT='reference/pool2 (MaxPool)' ");
  EXPECT_EQ(breach.status, 1);
  EXPECT_NE(breach.out.find("DIFFER"), std::string::npos) << breach.out;
  EXPECT_NE(breach.err.find(fmt::format("{} of {} pairs", devices.size() - 1, pairs.size())),
            std::string::npos)
      << breach.err;
}

}  // namespace
}  // namespace forge
