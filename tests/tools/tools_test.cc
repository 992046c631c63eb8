// SPDX-License-Identifier: Apache-2.0
// The programs as a person meets them: what they print, what they refuse, with which exit status,
// and that nothing half-done stays behind.
#include <sys/wait.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "formats/arrays/npy.h"
#include "tests/support/fault_injection.h"
#include "tests/support/status_matchers.h"
#include "tests/tools/shell.h"

namespace forge {
namespace {

using namespace testing;  // NOLINT: how programs are run

TEST(ForgeRunTest, NamesAPicture) {
  const Outcome o = Shell("forge-run --device reference " + kModel + " --input image=" + kPicture);
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_NE(o.out.find("bag"), std::string::npos);
  EXPECT_NE(o.out.find("%"), std::string::npos);
}

TEST(ForgeRunTest, StacksPicturesIntoABatch) {
  const std::string other = kSource + "/examples/fashion/pictures/sandal.png";
  const Outcome o = Shell("forge-run --device reference --top 1 " + kModel + " --input " +
                          kPicture + " --input " + other);
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_NE(o.out.find("sandal.png"), std::string::npos) << o.out;
}

TEST(ForgeRunTest, PrintsTheJsonOfTheContract) {
  const Outcome plain = Shell("forge-run --json --device reference " + kModel +
                              " --input image=random:1 --dim N=2 --compare reference");
  const auto json = nlohmann::json::parse(plain.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << plain.out << plain.err;
  for (const char* key :
       {"device", "driver", "model", "load_ms", "compile_ms", "first_ms", "latency_ms", "steps",
        "dispatches", "barriers", "kernels_compiled", "kernels_cached", "kernels_printed",
        "peak_bytes", "weight_bytes", "fallback", "outputs", "compare"})
    EXPECT_TRUE(json.contains(key)) << key;
  EXPECT_EQ(json["compare"]["worst"]["rel_error"], 0.0);
}

// Beside the reference, which stays exact.
TEST(ForgeRunTest, ComputesInHalfTheBits) {
  if (!IsHere("cpu")) GTEST_SKIP() << "there is no CPU device";
  for (const std::string precision : {"f16", "bf16"}) {
    const Outcome o =
        Shell("forge-run --json --device cpu " + kModel + " --input image=" + kPicture +
              " --compare reference --precision " + precision);
    EXPECT_EQ(o.status, 0) << o.err;
    const auto json = nlohmann::json::parse(o.out, nullptr, false);
    EXPECT_GT(json["compare"]["worst"]["rel_error"], 1e-6) << precision;
  }
  ExpectError("forge-run --device cpu " + kModel + " --input image=" + kPicture + " --precision f8",
              2, "precision 'f8' is not exact, f16, bf16 or fast");
}

TEST(ForgeRunTest, WritesOutputsAndATrace) {
  TempFolder folder;
  const Outcome o = Shell("forge-run --json --explain --device reference " + kModel +
                          " --input image=" + kPicture + " --output-dir " + Quoted(folder / "out") +
                          " --profile " + Quoted(folder / "trace.json"));
  ASSERT_EQ(o.status, 0) << o.err;
  const auto json = nlohmann::json::parse(o.out, nullptr, false);
  const std::string file = folder / "out/probabilities.npy";
  EXPECT_EQ(json["outputs"][0]["file"], file);
  FORGE_ASSERT_OK_AND_ASSIGN(const ir::HostValue written, ReadNpy(file));
  EXPECT_EQ(written.type().ToText(), "f32[1, 10]");
  double sum = 0, most = 0;
  for (int64_t i = 0; i < written.elements(); ++i) {
    sum += written.f64(i);
    most = std::max(most, written.f64(i));
  }
  EXPECT_NEAR(sum, 1, 1e-6);
  EXPECT_EQ(json["outputs"][0]["classes"][0][0]["class"], "bag");
  EXPECT_EQ(json["outputs"][0]["classes"][0][0]["score"], most);

  const auto trace = nlohmann::json::parse(Slurp(folder / "trace.json"), nullptr, false);
  std::vector<std::string> traced, planned;
  for (const auto& e : trace["traceEvents"])
    if (e["ph"] == "X" && e.contains("args")) traced.push_back(e["name"]);
  for (const auto& s : json["plan"]["steps"]) planned.push_back(s["label"]);
  EXPECT_GT(planned.size(), 5u);
  EXPECT_EQ(traced, planned);
}

TEST(ForgeRunTest, GivesInnerValuesByName) {
  const Outcome o = Shell("forge-run --device reference --print " + kModel +
                          " --input image=" + kPicture + " --output probabilities");
  EXPECT_EQ(o.status, 0) << o.err;
  ExpectError("forge-run --device reference " + kModel + " --input image=" + kPicture +
                  " --output nothing_like_it",
              2, "nothing_like_it");
}

TEST(ForgeRunTest, RefusesWrongInputs) {
  const std::string run = "forge-run --device reference " + kModel + " ";
  ExpectError(run + "--input picture=" + kPicture, 2, "no input 'picture'");
  ExpectError(run, 2, "missing");
  ExpectError(run + "--input image=random:1", 2, "--dim N=N");
  ExpectError(run + "--input image=3", 2, "not a scalar");
  ExpectError(run + "--input image=/no/such.npy", 3, "/no/such.npy");
  ExpectError(run + "--input image=" + kSource + "/tests/data/fashion/probabilities.npy", 2,
              "image");
  ExpectError("forge-run --device reference /no/such.bin --input image=3", 3, "/no/such.bin");
  ExpectError("forge-run --device toaster " + kModel, 2, "toaster");
  ExpectError("forge-run --device vulkan:nosuchgpu " + kModel, 4, "nosuchgpu");
  ExpectError("forge-run --nonsense " + kModel, 2, "--nonsense");
}

TEST(ForgeRunTest, KeepsToAMemoryLimit) {
  const std::string run =
      "forge-run --device reference " + kModel + " --input image=" + kPicture + " --memory-limit ";
  EXPECT_EQ(Shell(run + "64M").status, 0);
  ExpectError(run + "100K", 5, "the weights need");
  ExpectError(run + "350K", 5, "besides the weights");
  ExpectError(run + "lots", 2, "'lots'");
  ExpectError(run + "99999999999G", 2, "'99999999999G'");
}

TEST(ForgeRunTest, RefusesAPictureThatIsNone) {
  TempFolder folder;
  Write(folder.path() / "text.png", "this is no picture");
  ExpectError("forge-run --device reference " + kModel +
                  " --input image=" + Quoted(folder.path() / "text.png"),
              3, "text.png");
}

TEST(ForgeRunTest, LeavesNothingWhereItCannotWrite) {
  ExpectError("forge-run --device reference " + kModel + " --input image=" + kPicture +
                  " --output-dir /proc/forge-out",
              1, "/proc/forge-out");
}

TEST(ForgeRunTest, SaysWhichBackendIsMissing) {
  TempFolder folder;
  const std::string lib = kBin + "../lib";
  std::filesystem::create_directories(folder.path() / "bin");
  std::filesystem::create_directories(folder.path() / "lib");
  std::filesystem::copy(kBin + "forge-run", folder.path() / "bin");
  for (const auto& e : std::filesystem::directory_iterator(lib))
    if (e.path().filename().string().starts_with("libforge.so"))
      std::filesystem::copy(e.path(), folder.path() / "lib" / e.path().filename(),
                            std::filesystem::copy_options::copy_symlinks);
  const std::string program = folder.path() / "bin/forge-run";
  TempFolder logs;
  const std::string err = logs.path() / "err";
  int status = std::system((program + " --device vulkan " + kModel + " 2>'" + err + "'").c_str());
  EXPECT_EQ(WEXITSTATUS(status), 4);
  EXPECT_NE(Slurp(err).find("libforge_vulkan.so"), std::string::npos) << Slurp(err);
  status = std::system((program + " --device reference " + kModel + " --input image=" + kPicture +
                        " >/dev/null 2>'" + err + "'")
                           .c_str());
  EXPECT_EQ(WEXITSTATUS(status), 0) << Slurp(err);
}

// Files that were cut off or have bits flipped are refused, or give a model that still verifies:
// never a crash.
void ExpectHardened(const std::filesystem::path& path, const std::string& command) {
  const Outcome o = Shell(command + Quoted(path));
  EXPECT_TRUE(o.status == 0 || o.status == 3) << o.status << " " << o.err;
  EXPECT_TRUE(o.status == 0 || o.err.find("error: ") != std::string::npos) << o.err;
}

void Damage(const std::string& original, const std::string& extension, const std::string& command) {
  TempFolder folder;
  const std::filesystem::path path = folder.path() / ("damaged" + extension);
  Write(path, "");
  ExpectError(command + Quoted(path), 3, "damaged");
  for (int i = 1; i <= 10; ++i) {
    Write(path, std::string_view(original).substr(0, original.size() * i / 11));
    ExpectError(command + Quoted(path), 3, "damaged");
  }
  for (uint32_t seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    std::string bytes = original;
    for (int flips = 0; flips < 3; ++flips)
      bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    Write(path, bytes);
    SCOPED_TRACE(seed);
    ExpectHardened(path, command);
  }
}

TEST(ForgeInspectTest, SurvivesDamagedModelFiles) {
  Damage(Slurp(kModel), ".bin", "forge-inspect --verify ");
}

TEST(ForgeInspectTest, SurvivesDamagedOnnxFiles) {
  Damage(Slurp(kSource + "/examples/fashion/fashion.onnx"), ".onnx", "forge-inspect ");
}

TEST(ForgeInspectTest, RefusesANewerMajorVersionWithBothNumbers) {
  TempFolder folder;
  std::string bytes = Slurp(kModel);
  const size_t at = 8;  // docs/model-format.md: the major version follows the magic
  bytes[at] = 99;
  Write(folder.path() / "newer.bin", bytes);
  ExpectError("forge-inspect " + Quoted(folder.path() / "newer.bin"), 3, "99");
}

// Without memory, as on the devices of the lab that only compile.
TEST(ForgeInspectTest, ShowsAKernelWithoutRunningAnything) {
  if (!IsHere("vulkan")) GTEST_SKIP() << "no Vulkan device";
  const TempFolder cache;
  std::string environment = "XDG_CACHE_HOME=" + Quoted(cache.path()) + " ";
  for (const auto& [name, value] : FaultInjection(FORGE_BINARY_DIR, "memory"))
    environment += name + "='" + value + "' ";
  const std::string model = kModel + " --device vulkan --dim N=1 ";
  EXPECT_NE(Shell("forge-run " + model + "--input image=" + kPicture, environment).status, 0);
  const Outcome o = Shell("forge-inspect " + model + "--kernel 1 --stats", environment);
  EXPECT_EQ(o.status, 0) << o.err;
  for (const char* part : {"step 1: ", "pool1 (MaxPool)", ".kernel:\nkernel ", ".spv:\n",
                           "OpEntryPoint GLCompute", "OpFunctionEnd", "statistic"})
    EXPECT_NE(o.out.find(part), std::string::npos) << part << "\n" << o.out;
  ExpectError("forge-inspect " + model + "--kernel 1000", 2, "there is no step 1000");
}

TEST(ForgeConvertTest, LeavesNoFileBehindWhenItFails) {
  TempFolder folder;
  Write(folder.path() / "bad.onnx", "garbage");
  const std::string out = folder.path() / "out.bin";
  ExpectError("forge-convert " + Quoted(folder.path() / "bad.onnx") + " -o '" + out + "'", 3,
              "bad.onnx");
  EXPECT_FALSE(std::filesystem::exists(out));
  ExpectError("forge-convert " + kSource + "/examples/fashion/fashion.onnx -o /proc/no/out.bin", 1,
              "/proc/no/out.bin");
}

TEST(ForgeConvertTest, RoundTripsThroughModelBin) {
  TempFolder folder;
  const std::string again = folder.path() / "again.bin";
  ASSERT_EQ(Shell("forge-convert " + kModel + " -o '" + again + "'").status, 0);
  EXPECT_EQ(Shell("forge-inspect --text " + kModel).out,
            Shell("forge-inspect --text '" + again + "'").out);
}

TEST(ForgeConvertTest, FixesShapes) {
  TempFolder folder;
  const std::string out = folder / "fixed.bin", in = kSource + "/examples/fashion/fashion.onnx";
  const auto inputs = [&] {
    return nlohmann::json::parse(
        Shell("forge-inspect --json " + out).out)["functions"][0]["inputs"];
  };
  ASSERT_EQ(Shell("forge-convert " + in + " --shape image=3,1,28,28 -o " + out).status, 0);
  EXPECT_EQ(inputs()[0]["type"], "f32[3, 1, 28, 28]");
  ASSERT_EQ(Shell("forge-convert " + in + " --shape image=pictures,1,28,28 -o " + out).status, 0);
  EXPECT_EQ(inputs()[0]["type"], "f32[pictures, 1, 28, 28]");
  EXPECT_EQ(Shell("forge-run --device reference " + out + " --input image=random --dim pictures=2")
                .status,
            0);
  const std::string other = folder / "other.bin";
  ExpectError("forge-convert " + in + " --shape nothing=3,1,28,28 -o " + other, 2, "nothing");
  ExpectError("forge-convert " + in + " --shape image -o " + other, 2, "NAME=");
  ExpectError("forge-convert " + kModel + " --shape image=3,1,28,28 -o " + other, 2, "model.bin");
  EXPECT_FALSE(std::filesystem::exists(other));
}

TEST(ForgeConvertTest, PutsWeightsBesideTheModel) {
  TempFolder folder;
  const std::string out = folder / "apart.bin", weights = folder / "apart.bin.weights";
  ASSERT_EQ(Shell("forge-convert " + kModel + " --external-weights -o " + out).status, 0);
  const size_t in_model = std::filesystem::file_size(out);
  EXPECT_GT(std::filesystem::file_size(weights), 300'000u);
  EXPECT_LT(in_model + std::filesystem::file_size(weights),
            std::filesystem::file_size(kModel) + 10'000);
  EXPECT_LT(in_model, 50'000u);
  const std::string print = " --device reference --print --input image=" + kPicture;
  EXPECT_EQ(Shell("forge-run " + out + print).out.substr(10),
            Shell("forge-run " + kModel + print).out.substr(12));  // behind the model's name
  EXPECT_EQ(Shell("forge-inspect --verify " + out).status, 0);
  std::filesystem::remove(weights);
  ExpectError("forge-inspect --verify " + out, 3, "apart.bin.weights");
}

TEST(ForgeParityTest, ComparesEveryPair) {
  if (!IsHere("cpu")) GTEST_SKIP() << "there is no CPU device";
  const std::string parity = "forge-parity --json " + kModel +
                             " --device reference,cpu,reference --inputs random:1 --dim N=2";
  const Outcome o = Shell(parity);
  EXPECT_EQ(o.status, 0) << o.err;
  const auto json = nlohmann::json::parse(o.out, nullptr, false);
  ASSERT_EQ(json.size(), 3u);
  EXPECT_EQ(json[1]["rel_error"], 0.0) << "the reference against itself";
  EXPECT_GT(json[0]["rel_error"], 0.0) << "f32 against f64";
  // The norm that errors are relative to is the other one's.
  EXPECT_NEAR(json[0]["rel_error"].get<double>(), json[2]["rel_error"].get<double>(), 1e-12);
  const Outcome wrong = Shell(parity, "FORGE_FAULT='cpu/pool2 (MaxPool)' ");
  EXPECT_EQ(wrong.status, 1);
  const auto results = nlohmann::json::parse(wrong.out, nullptr, false)["results"];
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0]["within"], false);
  EXPECT_EQ(results[1]["within"], true);
  EXPECT_EQ(results[2]["within"], false);
}

TEST(ForgeParityTest, TakesOnlyTheCasesAskedFor) {
  const Outcome o = Shell("forge-parity ops --devices reference --filter '^softmax.f32'");
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_THAT(o.out, ::testing::ContainsRegex("softmax +reference +[1-9]"));
  EXPECT_EQ(std::count(o.out.begin(), o.out.end(), '\n'), 2) << o.out;  // no other op has a row
  ExpectError("forge-parity ops --device reference --filter nosuchop", 2, "no case");
  const Outcome bad = Shell("forge-parity ops --devices reference --filter '('");
  EXPECT_EQ(bad.status, 2) << bad.err;
  EXPECT_NE(bad.err.find("'(' is no regular expression"), std::string::npos) << bad.err;
}

TEST(ForgeParityTest, WritesKernelsAndWhatTheirCompilersSay) {
  if (!IsHere("vulkan")) GTEST_SKIP() << "no Vulkan device";
  const TempFolder folder;
  const Outcome o =
      Shell(fmt::format("forge-parity {} --devices vulkan --dim N=1 --compile-only --dump '{}' "
                        "--stats '{}'",
                        kModel, (folder / "kernels").string(), (folder / "stats.tsv").string()));
  EXPECT_EQ(o.status, 0) << o.err;
  int kernels = 0;
  for (const auto& e : std::filesystem::directory_iterator(folder / "kernels" / "vulkan"))
    kernels += e.path().extension() == ".spv";
  EXPECT_GT(kernels, 5);
  std::string header;
  std::getline(std::ifstream(folder / "stats.tsv"), header);
  EXPECT_EQ(header, "device\twhat\tstep\tkernel\tstatistic\tvalue");
}

TEST(ForgeDevicesTest, ListsTheReferenceAndExplainsAbsentBackends) {
  const Outcome o = Shell("forge-devices --json");
  EXPECT_EQ(o.status, 0) << o.err;
  const auto json = nlohmann::json::parse(o.out, nullptr, false);
  bool found = false;
  for (const auto& d : json) found |= d["id"] == "reference:0";
  EXPECT_TRUE(found);
}

TEST(ToolsTest, HelpHasAnExample) {
  for (const char* tool : {"forge-run", "forge-devices", "forge-convert", "forge-inspect",
                           "forge-parity", "forge-bench"}) {
    const Outcome o = Shell(std::string(tool) + " --help");
    EXPECT_EQ(o.status, 0);
    EXPECT_NE(o.out.find("Example"), std::string::npos) << tool;
    EXPECT_EQ(Shell(std::string(tool) + " --version").status, 0);
  }
}

TEST(ToolsTest, JsonErrorsAreOneObject) {
  const Outcome o = Shell("forge-run --json --device reference /no/such.bin");
  EXPECT_EQ(o.status, 3);
  const auto json = nlohmann::json::parse(o.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << o.out;
  EXPECT_EQ(json["error"]["code"], "file");
}

TEST(SlowToolsTest, WhatTakesNoTimeHasNoRate) {
  if (!IsHere("vulkan")) GTEST_SKIP() << "there is no Vulkan device";
  const Outcome text = Shell("forge-bench ops --device vulkan --filter '^reshape'");
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, ::testing::ContainsRegex("f32 +0\\.0 +- +- +- +- +-"));
}

TEST(SlowToolsTest, AutotuneKeepsAnswersAndChoices) {
  if (!IsHere("vulkan")) GTEST_SKIP() << "there is no Vulkan device";
  const TempFolder cache;
  const std::string here = "XDG_CACHE_HOME=" + Quoted(cache.path()) + " ";
  const std::string run = "forge-run --device vulkan " + kModel + " --input image=" + kPicture +
                          " --compare reference ";
  const Outcome tuned = Shell(run + "--autotune 2", here);
  EXPECT_EQ(tuned.status, 0) << tuned.err;
  EXPECT_EQ(Shell(run, here).status, 0);
  // What a search finds is kept: it is the default of the next one.
  const std::string tune =
      "forge-bench tune --device vulkan --filter '^softmax' --seconds 20 --candidates 3 --json";
  const auto search = [&] {
    const Outcome bench = Shell(tune, here);
    EXPECT_EQ(bench.status, 0) << bench.err;
    return nlohmann::json::parse(bench.out, nullptr, false);
  };
  const auto first = search(), second = search();
  ASSERT_TRUE(first.is_array() && !first.empty()) << first.dump();
  ASSERT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_THAT(first[i]["name"].get<std::string>(), ::testing::StartsWith("softmax"));
    EXPECT_GE(first[i]["tried"], 2) << first[i];
    EXPECT_EQ(second[i]["default"], first[i]["found"]) << second[i];
  }
}

}  // namespace
}  // namespace forge
