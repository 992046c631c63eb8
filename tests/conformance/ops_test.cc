// SPDX-License-Identifier: Apache-2.0
// Every case of every op on every device there is, as a kernel or as parts, against the op's own
// evaluator. docs/support.md counts the cases that each device runs and lists those that it
// refuses.
#include <gtest/gtest.h>

#include "base/platform.h"
#include "ir/graph/interpreter.h"
#include "runtime/backends.h"
#include "runtime/op_on_device.h"
#include "tests/support/case_seeds.h"
#include "tests/support/expect_results.h"
#include "tests/support/metal_check.h"
#include "tests/support/oracle.h"
#include "tests/support/spirv_check.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_names.h"

namespace forge {
namespace {

struct OpAndDevice {
  std::string device;
  const ir::OpDef* op;
};

std::vector<OpAndDevice> Everything() {
  std::vector<OpAndDevice> all;
  for (const BackendDevices& b : ListDevices())
    for (const DeviceInfo& d : b.devices)
      if (d.usable)
        for (const ir::OpDef* op : ir::AllOps()) all.push_back({d.id, op});
  return all;
}

// Is compiling all that is to be tested of a case? A device of the lab may run none.
bool IsOnlyCompiled(bool bench) { return bench || Environment("FORGE_LAB_COMPILE_ONLY"); }

std::vector<OpAndDevice> EverythingOnlyCompiled() {
  std::vector<OpAndDevice> all = Everything();
  std::erase_if(all, [](const OpAndDevice& x) {
    return std::ranges::none_of(x.op->cases(*x.op), [](const ir::Case& c) {
      return c.refuse.empty() && IsOnlyCompiled(c.bench);
    });
  });
  return all;
}

class OpsTest : public testing::TestWithParam<OpAndDevice> {
 protected:
  void SetUp() override {
    device_ = OpenOnce(GetParam().device);
    ASSERT_TRUE(device_);
  }
  // A runner of the case, whose shaders are valid; null where the device refuses it, saying why.
  std::unique_ptr<OpOnDevice> MakeRunner(const ir::ConcreteCase& c,
                                         const Executable::Options& options) {
    const OpSupport support = OpOnDevice::Support(*device_, c.op, c.types());
    if (support.way == OpSupport::Way::kRefused) {
      EXPECT_FALSE(support.refused.empty());
      for (const ir::Refusal& r : support.refused) EXPECT_FALSE(r.why.empty()) << r.ToText();
      ++refused_;
      return nullptr;
    }
    auto runner = OpOnDevice::Create(device_, c.op, c.types(), options);
    EXPECT_TRUE(runner.ok()) << runner.status();
    if (!runner.ok()) return nullptr;
    for (const ProgramRef& program : (*runner)->executable().programs()) {
      EXPECT_EQ(SpirvErrors(*program), "");
      EXPECT_EQ(MetalErrors(*program), "");
    }
    return *std::move(runner);
  }

  DeviceRef device_;
  size_t refused_ = 0;
};

void CheckResults(OpOnDevice& runner, const ir::ConcreteCase& c, uint64_t seed) {
  SCOPED_TRACE(fmt::format("FORGE_CASE_SEEDS={0}..{0}", seed));
  auto inputs = ir::MakeInputs(c, seed);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  auto results = runner.Run(inputs->pointers());
  ASSERT_TRUE(results.ok()) << results.status();
  auto reference = ir::Evaluate(c.op, inputs->pointers());
  ASSERT_TRUE(reference.ok()) << reference.status();
  ExpectResults(c.op, inputs->pointers(), *reference, *results);
}

TEST_P(OpsTest, AgreesWithItsEvaluator) {
  size_t cases = 0;
  for (const uint64_t seed : CaseSeeds()) {
    FORGE_ASSERT_OK_AND_ASSIGN(const auto in_turns, CasesInTurns(*GetParam().op, seed));
    if (in_turns.empty()) GTEST_SKIP() << GetParam().op->info.name << " has no cases";
    for (const ir::ConcreteCase& c : in_turns) {
      if (c.bench) continue;
      SCOPED_TRACE(c.ToText());
      if (const auto runner = MakeRunner(c, {})) CheckResults(*runner, c, seed);
      ++cases;
    }
  }
  ASSERT_GT(cases, 0u) << "all cases are for benchmarks";
  RecordProperty("ran", static_cast<int>(cases - refused_));
  RecordProperty("refused", static_cast<int>(refused_));
  if (refused_ == cases) GTEST_SKIP() << "all " << refused_ << " cases are refused";
}

class OpsCompileTest : public OpsTest {};

TEST_P(OpsCompileTest, Compiles) {
  FORGE_ASSERT_OK_AND_ASSIGN(const auto cases, CasesInTurns(*GetParam().op, 0));
  for (const ir::ConcreteCase& c : cases) {
    SCOPED_TRACE(c.ToText());
    if (IsOnlyCompiled(c.bench)) MakeRunner(c, {.compile_only = true});
  }
}

std::string Name(const testing::TestParamInfo<OpAndDevice>& info) {
  return AsTestName(std::string(info.param.op->info.name) + "_on_" + info.param.device);
}

INSTANTIATE_TEST_SUITE_P(AllDevices, OpsTest, testing::ValuesIn(Everything()), Name);
INSTANTIATE_TEST_SUITE_P(AllDevices, OpsCompileTest, testing::ValuesIn(EverythingOnlyCompiled()),
                         Name);

}  // namespace
}  // namespace forge
