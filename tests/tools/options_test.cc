// SPDX-License-Identifier: Apache-2.0
// Options mean the same in every program, and none is ignored in silence.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/support/onnx_model.h"
#include "tests/tools/shell.h"

namespace forge {
namespace {

using namespace testing;  // NOLINT: how programs are run

std::string RandomRun() {
  return "forge-run --device reference " + kModel + " --input image=random ";
}

nlohmann::json JsonOf(const Outcome& o) { return nlohmann::json::parse(o.out, nullptr, false); }

TEST(OptionsTest, WhatHasNoEffectIsRefused) {
  const std::string one = RandomRun() + "--dim N=1 ";
  ExpectError(one + "--steps", 2, "--steps has no effect without --compare");
  ExpectError(one + "--rtol 1", 2, "--rtol has no effect without --expect");
  ExpectError(one + "--candidates 3", 2, "--candidates has no effect without --autotune");
  ExpectError(one + "--preprocess color=gray", 2, "--preprocess has no effect");
  ExpectError(one + "--repeat 2 --duration 1", 2, "cannot be given together");
  ExpectError(one + "--check-finite --repeat 2", 2, "cannot be given together");
  ExpectError("forge-inspect " + kModel + " --stats", 2, "--stats has no effect without --kernel");
  ExpectError("forge-inspect " + kModel + " --verify --text", 2,
              "--text has no effect on --verify");
  ExpectError("forge-inspect " + kModel + " --dim N=1", 2, "--dim has no effect");
  ExpectError("forge-inspect " + kModel + " --weights --pass fuse", 2, "--weights has no effect");
  ExpectError("forge-parity ops --dim N=1", 2, "--dim has no effect on ops");
  ExpectError("forge-parity " + kModel + " --filter add", 2, "--filter has no effect on a model");
  ExpectError("forge-parity " + kModel + " --stats f.tsv", 2, "without --compile-only");
  ExpectError("forge-bench peak --filter add", 2, "--filter has no effect on peak");
  ExpectError("forge-bench ops --device cpu --device reference", 2, "choose another device");
  ExpectError("forge-bench ops --repeat 3", 2, "--repeat has no effect on ops");
  ExpectError("forge-bench " + kModel + " --seconds 3", 2, "--seconds has no effect on a model");
  ExpectError("forge-convert --opset-report -o x.bin " + kModel, 2, "--out has no effect");
}

TEST(OptionsTest, WhatIsGivenTwiceIsRefused) {
  ExpectError(RandomRun() + "--dim N=1 --dim N=2", 2, "'N' is given twice: as 1 and as 2");
  ExpectError(RandomRun() + "--dim N=1 --shape image=2,1,28,28", 2,
              "'N' is given twice: as 1 and as 2");
  ExpectError(RandomRun() + "--dim N=1 --device cpu", 2, "--device");
  ExpectError(RandomRun() + "--shape image=1,1,28,28 --shape image=1,1,28,28", 2,
              "the shape of input 'image' is given twice");
}

TEST(OptionsTest, DevicesAreNamedInOneWay) {
  for (const char* spelling : {"--device reference,reference", "--devices reference,reference",
                               "--device reference --device reference"}) {
    SCOPED_TRACE(spelling);
    const Outcome parity =
        Shell("forge-parity --json " + kModel + " --dim N=1 " + std::string(spelling));
    EXPECT_EQ(JsonOf(parity).size(), 1u) << parity.err;  // pairs
    const Outcome bench =
        Shell("forge-bench --json --repeat 1 " + kModel + " --dim N=1 " + std::string(spelling));
    EXPECT_EQ(JsonOf(bench).size(), 2u) << bench.err;
  }
  EXPECT_EQ(Shell("forge-run --devices reference " + kModel + " --input image=" + kPicture).status,
            0);
}

OnnxModel TwoInputs() {
  OnnxModel model;
  model.Input("a", {"h", "w"}).Input("b", {"n", "w"}).Output("y");
  model.Node("Concat", {"a", "b"}, {"y"}).set_name("join");
  Set(*model.graph().mutable_node(0), "axis", int64_t{0});
  return model;
}

TEST(OptionsTest, OpenDimensionsAreListedAllAtOnce) {
  TempFolder folder;
  Write(folder / "two.onnx", TwoInputs().File());
  const std::string model = Quoted(folder / "two.onnx");
  ExpectError("forge-run --device reference " + model + " --input a=random --input b=random", 2,
              "give --dim h=N --dim w=N --dim n=N, for inputs 'a' (f32[h, w]), 'b' (f32[n, w])");
  ExpectError("forge-inspect --device reference --kernel 0 " + model, 2,
              "give --dim h=N --dim w=N --dim n=N");
  ExpectError("forge-parity --device reference --compile-only --dim w=3 " + model, 2,
              "give --dim h=N --dim n=N");
}

TEST(OptionsTest, ShapesBindOpenDimensions) {
  TempFolder folder;
  Write(folder / "two.onnx", TwoInputs().File());
  const std::string run = "forge-run --device reference --json " + Quoted(folder / "two.onnx") +
                          " --input a=random --input b=random ";
  const Outcome o = Shell(run + "--shape a=2,5 --shape b=3,w");
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(JsonOf(o)["outputs"][0]["shape"], (std::vector<int>{5, 5}));
  const std::string plain = "forge-run --device reference " + Quoted(folder / "two.onnx") + " ";
  ExpectError(plain + "--shape a=2,5,1", 2, "3 dimensions");
  ExpectError(plain + "--shape c=2,5", 2, "no input 'c'");
  ExpectError(plain + "--shape a=2,5 --shape b=3,6", 2, "'w' is given twice: as 5 and as 6");
  ExpectError(plain + "--shape a=2,", 2, "is not of the form NAME=");
  ExpectError(RandomRun() + "--shape image=1,3,28,28", 2, "forge-convert --shape");
}

TEST(OptionsTest, OutputsThatWouldShareAFileAreRefused) {
  TempFolder folder;
  OnnxModel model;
  model.Input("x", {"2"}).Output("a/b").Output("a_b");
  model.Node("Relu", {"x"}, {"a/b"});
  model.Node("Neg", {"x"}, {"a_b"});
  Write(folder / "two.onnx", model.File());
  const std::string run = "forge-run --device reference " + Quoted(folder / "two.onnx") +
                          " --input x=random --output-dir " + Quoted(folder / "out");
  ExpectError(run, 2, "'a/b' and 'a_b' would both be written to a_b.npy");
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  EXPECT_EQ(Shell(run + " --output a_b").status, 0);
}

TEST(OptionsTest, JsonOfEveryModeIsOneValue) {
  TempFolder folder;
  const std::string page = Quoted(folder / "page.html");
  for (const std::string& command : std::vector<std::string>{
           "forge-inspect --json " + kModel, "forge-inspect --json --text " + kModel,
           "forge-inspect --json --weights " + kModel, "forge-inspect --json --verify " + kModel,
           "forge-inspect --json --pass fold --device reference " + kModel,
           "forge-inspect --json --kernel 1 --device reference --dim N=1 " + kModel,
           "forge-inspect --json --html " + page + " " + kModel,
           "forge-parity --json ops --device reference --filter '^softmax'",
           "forge-convert --json --opset-report " + kSource + "/examples/fashion/fashion.onnx",
           "forge-bench --json --repeat 1 --device reference --dim N=1 " + kModel,
           "forge-devices --json"}) {
    const Outcome o = Shell(command);
    EXPECT_EQ(o.status, 0) << command << "\n" << o.err;
    EXPECT_FALSE(JsonOf(o).is_discarded()) << command << "\n" << o.out;
  }
}

TEST(OptionsTest, JsonKeepsWhatWasMeasuredBeforeAFailure) {
  if (!IsHere("cpu")) GTEST_SKIP() << "there is no CPU device";
  const std::string fault = "FORGE_FAULT='cpu/pool2 (MaxPool)' ";
  const Outcome run =
      Shell("forge-run --json --device cpu " + kModel + " --input image=" + kPicture +
                " --repeat 2 --compare reference --steps",
            fault);
  EXPECT_EQ(run.status, 1);
  const nlohmann::json json = JsonOf(run);
  ASSERT_TRUE(json.is_object()) << run.out;
  EXPECT_EQ(json["latency_ms"]["runs"], 2);
  EXPECT_EQ(json["compare"]["within"], false);
  EXPECT_THAT(json["compare"]["first_step"].get<std::string>(),
              ::testing::HasSubstr("pool2 (MaxPool)"));
  EXPECT_EQ(json["error"]["code"], "failed");
  const Outcome parity =
      Shell("forge-parity --json " + kModel + " --dim N=1 --device reference,cpu", fault);
  EXPECT_EQ(parity.status, 1);
  const nlohmann::json pairs = JsonOf(parity);
  ASSERT_TRUE(pairs.is_object()) << parity.out;
  EXPECT_EQ(pairs["results"][0]["within"], false);
  EXPECT_EQ(pairs["error"]["code"], "failed");
}

}  // namespace
}  // namespace forge
