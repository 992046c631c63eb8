// SPDX-License-Identifier: Apache-2.0
// The tests of the ONNX standard on every device there is. A test that fails is listed in
// expected_failures.tsv with its cause; one that is listed and passes is a failure, too.
// With FORGE_ONNX_EXPECT=nothing the list is not read.
#include <gtest/gtest.h>

#include "base/platform.h"
#include "ir/ops/elementwise/elementwise.h"
#include "runtime/backends.h"
#include "runtime/op_on_device.h"
#include "runtime/session.h"
#include "tests/conformance/onnx/standard_tests.h"
#include "tests/support/oracle.h"
#include "tests/support/test_names.h"

namespace forge {
namespace {

struct NodeTestOnDevice {
  std::string device, suite, name;
  friend std::ostream& operator<<(std::ostream& out, const NodeTestOnDevice& t) {
    return out << t.suite << '/' << t.name << " on " << t.device;
  }
};

using Suites = std::vector<const char*>;
const Suites kNodeSuites = {"node", "simple", "pytorch-operator", "pytorch-converted"};
const Suites kModelSuites = {"light"};

std::vector<NodeTestOnDevice> TestsOf(const Suites& suites) {
  std::vector<NodeTestOnDevice> all;
  for (const char* suite : suites)
    for (const std::string& name : StandardTests(suite))
      for (const std::string& device : Devices()) all.push_back({device, suite, name});
  return all;
}

const ExpectedFailures& Expected() {
  static const ExpectedFailures expected =
      Environment("FORGE_ONNX_EXPECT") == "nothing"
          ? ExpectedFailures()
          : ReadExpectedFailures(std::filesystem::path(FORGE_SOURCE_DIR) /
                                 "tests/conformance/onnx/expected_failures.tsv");
  return expected;
}

using Compare = absl::Status (*)(const ir::HostValue& want, const ir::HostValue& have);

absl::Status RunSet(Session& session, const StandardData& set, Compare compare) {
  FORGE_ASSIGN_OR_RETURN(const std::vector<NamedTensor> results, session.Run(set.inputs));
  for (size_t i = 0; i < results.size(); ++i)
    if (absl::Status s = compare(set.outputs[i], results[i].value); !s.ok())
      return Annotate(s, fmt::format("output '{}'", results[i].name));
  return absl::OkStatus();
}

absl::Status RunTest(const std::string& test, const DeviceRef& device) {
  FORGE_ASSIGN_OR_RETURN(const std::vector<StandardData> sets, ReadStandardData(test));
  FORGE_ASSIGN_OR_RETURN(auto model, Model::Load(StandardModel(test)));
  FORGE_ASSIGN_OR_RETURN(auto session, Session::Create(std::move(model), device));
  const bool draws = DrawsNumbers(test);
  for (const StandardData& set : sets)
    FORGE_RETURN_IF_ERROR(RunSet(*session, set, draws ? CompareTypes : CompareAsStandard));
  return absl::OkStatus();
}

// Is it a refusal of f64 by a device that has none?
bool RefusesF64(Device& device, const absl::Status& s) {
  if (!absl::IsUnimplemented(s) || Message(s).find("f64") == std::string::npos) return false;
  const ir::Types operand = {ir::Type::Tensor(DType::kF64, {2})};
  return OpOnDevice::Support(device, ir::Neg{}, operand).way == OpSupport::Way::kRefused;
}

// Is it a refusal of weights that the device can bind in too few parts? Two models of the suite
// "light" have a matrix of over 300 MB.
bool RefusesItsParts(const absl::Status& s) {
  return absl::IsUnimplemented(s) && Message(s).find("one kernel binds") != std::string::npos;
}

class OnnxNodeTest : public testing::TestWithParam<NodeTestOnDevice> {};
class SlowOnnxModelTest : public OnnxNodeTest {};

void ExpectTheResultsOfTheStandard(const NodeTestOnDevice& test) {
  const auto& [id, suite, name] = test;
  const DeviceRef device = OpenOnce(id);
  ASSERT_TRUE(device);
  const absl::Status s = RunTest(suite + "/" + name, device);
  if (RefusesF64(*device, s)) GTEST_SKIP() << "the device has no f64";
  if (RefusesItsParts(s)) GTEST_SKIP() << Message(s);
  const std::string cause = Expected().CauseOf(suite + "/" + name, id);
  if (cause.empty()) {
    EXPECT_TRUE(s.ok()) << s;
  } else {
    EXPECT_FALSE(s.ok()) << "it passes, but is expected to fail: " << cause;
  }
}

TEST_P(OnnxNodeTest, GivesTheResultsOfTheStandard) { ExpectTheResultsOfTheStandard(GetParam()); }
TEST_P(SlowOnnxModelTest, GivesTheResultsOfTheStandard) {
  ExpectTheResultsOfTheStandard(GetParam());
}

std::string TestName(const testing::TestParamInfo<NodeTestOnDevice>& info) {
  return AsTestName(
      fmt::format("{}_{}_on_{}", info.param.suite, info.param.name, info.param.device));
}

INSTANTIATE_TEST_SUITE_P(Standard, OnnxNodeTest, testing::ValuesIn(TestsOf(kNodeSuites)), TestName);
INSTANTIATE_TEST_SUITE_P(Standard, SlowOnnxModelTest, testing::ValuesIn(TestsOf(kModelSuites)),
                         TestName);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OnnxNodeTest);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SlowOnnxModelTest);

TEST(OnnxNodeTests, AreThere) {
  if (!std::filesystem::exists(StandardTestFolder()))
    GTEST_SKIP() << "tools/fetch-models --onnx-tests has not brought them";
  EXPECT_EQ(StandardTests("node").size(), 1765U);
  for (const Suites& suites : {kNodeSuites, kModelSuites})
    for (const char* suite : suites) EXPECT_FALSE(StandardTests(suite).empty()) << suite;
  for (const std::string& test : Expected().tests())
    EXPECT_TRUE(std::filesystem::exists(StandardTestFolder() / test)) << test;
}

}  // namespace
}  // namespace forge
