// SPDX-License-Identifier: Apache-2.0
// forge-parity --reduce: what is left of a model in which one kernel is wrong.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/support/onnx_model.h"
#include "tests/tools/shell.h"

namespace forge {
namespace {

using namespace testing;  // NOLINT: how programs are run

std::vector<std::string> OpsIn(const std::filesystem::path& model) {
  const auto json =
      nlohmann::json::parse(Shell("forge-inspect --json " + Quoted(model)).out, nullptr, false);
  std::vector<std::string> ops;
  for (const auto& n : json["functions"][0]["nodes"]) ops.push_back(n["name"]);
  return ops;
}

class ReduceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!IsHere("cpu")) GTEST_SKIP() << "there is no CPU device";
  }
  Outcome Reduce(const std::string& model, const std::string& label) {
    return Shell("forge-parity " + model + " --device reference,cpu --reduce " + Quoted(small_),
                 "FORGE_FAULT='cpu/" + label + "' ");
  }
  TempFolder folder_;
  const std::filesystem::path small_ = folder_ / "small.bin";
};

TEST_F(ReduceTest, LeavesTheWrongNodeAlone) {
  const std::string label = "pool2 (MaxPool)";
  const Outcome o = Reduce(kModel + " --dim N=2", label);
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(OpsIn(small_), std::vector<std::string>{"pool"});
  EXPECT_THAT(o.out, ::testing::HasSubstr("1 of "));
  // It fails by itself, on the inputs written beside it, and only with the fault.
  const std::string again = "forge-parity " + Quoted(small_) + " --device reference,cpu --inputs " +
                            Quoted(small_.string() + ".inputs");
  EXPECT_EQ(Shell(again, "FORGE_FAULT='cpu/" + label + "' ").status, 1);
  const Outcome good = Shell(again);
  EXPECT_EQ(good.status, 0) << good.err;
}

// The label is that of the fused kernel: each of its nodes is needed.
TEST_F(ReduceTest, KeepsWhatMakesTheKernel) {
  const Outcome o = Reduce(kModel + " --dim N=1 --json", "conv2 + norm2 + relu2");
  ASSERT_EQ(o.status, 0) << o.err;
  const auto json = nlohmann::json::parse(o.out, nullptr, false);
  EXPECT_EQ(json["nodes"], static_cast<int>(OpsIn(small_).size()));
  EXPECT_GT(json["nodes_before"], json["nodes"]);
  const std::vector<std::string> ops = OpsIn(small_);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "conv"), 1) << json.dump();
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "relu"), 1) << json.dump();
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "pool"), 0) << json.dump();
}

TEST_F(ReduceTest, FindsNothingWhereDevicesAgree) {
  const Outcome o = Reduce(kModel + " --dim N=1", "no such step");
  EXPECT_EQ(o.status, 2) << o.err;
  EXPECT_THAT(o.err, ::testing::HasSubstr("there is nothing to reduce"));
  EXPECT_FALSE(std::filesystem::exists(small_));
  ExpectError("forge-parity " + kModel + " --dim N=1 --device reference --reduce " + Quoted(small_),
              2, "two devices");
}

}  // namespace
}  // namespace forge
