// SPDX-License-Identifier: Apache-2.0
// Every case of every op on every device there is, against the op's own evaluator.
#include <gtest/gtest.h>

#include <map>

#include "ir/interpreter.h"
#include "ir/ops/bounds.h"
#include "runtime/backends.h"
#include "runtime/op_runner.h"
#include "tests/support/metal_check.h"
#include "tests/support/spirv_check.h"

namespace forge {
namespace {

struct OpOnDevice {
  std::string device;
  const ir::OpDef* op;
};

std::vector<OpOnDevice> Everything() {
  std::vector<OpOnDevice> all;
  for (const BackendDevices& b : ListDevices())
    for (const DeviceInfo& d : b.devices)
      if (d.usable)
        for (const ir::OpDef* op : ir::AllOps()) all.push_back({d.id, op});
  return all;
}

DeviceRef Open(const std::string& id) {
  static std::map<std::string, DeviceRef> open;
  DeviceRef& device = open[id];
  if (!device) {
    auto opened = OpenDevice(id, {});
    if (opened.ok()) device = *opened;
  }
  return device;
}

class OpsTest : public testing::TestWithParam<OpOnDevice> {};

TEST_P(OpsTest, AgreesWithItsEvaluator) {
  const DeviceRef device = Open(GetParam().device);
  ASSERT_TRUE(device);
  auto cases = ir::ConcreteCases(*GetParam().op);
  ASSERT_TRUE(cases.ok()) << cases.status();
  int ran = 0, without_kernel = 0;
  for (const ir::ConcreteCase& c : *cases) {
    if (!c.refuse.empty() || c.bench) continue;
    SCOPED_TRACE(c.ToText());
    if (const Verdict v = OpRunner::Supports(*device, c.op, c.types()); !v) {
      EXPECT_FALSE(v.text().empty()) << "a refusal says why";
      ++without_kernel;
      continue;
    }
    ++ran;
    auto runner = OpRunner::Create(device, c.op, c.types());
    ASSERT_TRUE(runner.ok()) << runner.status();
    auto inputs = ir::MakeInputs(c);
    ASSERT_TRUE(inputs.ok()) << inputs.status();
    auto results = (*runner)->Run(inputs->pointers());
    ASSERT_TRUE(results.ok()) << results.status();
    auto reference = ir::Evaluate(c.op, inputs->pointers());
    ASSERT_TRUE(reference.ok()) << reference.status();
    for (size_t i = 0; i < results->size(); ++i) {
      const absl::Status s =
          ir::CompareResult(c.op, inputs->pointers(), (*reference)[i], (*results)[i], i);
      EXPECT_TRUE(s.ok()) << s;
    }
  }
  RecordProperty("ran", ran);
  RecordProperty("without_kernel", without_kernel);
  if (ran == 0 && without_kernel > 0)
    GTEST_SKIP() << "no kernel for any of " << without_kernel << " cases";
}

// Holds on devices that only compile too, and for the cases of real size.
TEST_P(OpsTest, Compiles) {
  const DeviceRef device = Open(GetParam().device);
  ASSERT_TRUE(device);
  auto cases = ir::ConcreteCases(*GetParam().op);
  ASSERT_TRUE(cases.ok()) << cases.status();
  for (const ir::ConcreteCase& c : *cases) {
    if (!c.refuse.empty() || !OpRunner::Supports(*device, c.op, c.types())) continue;
    const auto runner = OpRunner::Create(device, c.op, c.types(), {.compile_only = true});
    ASSERT_TRUE(runner.ok()) << c.ToText() << ": " << runner.status();
    for (const ProgramRef& program : (*runner)->executable().programs()) {
      EXPECT_EQ(SpirvErrors(*program), "") << c.ToText();
      EXPECT_EQ(MetalErrors(*program), "") << c.ToText();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllDevices, OpsTest, testing::ValuesIn(Everything()),
                         [](const auto& info) {
                           std::string name =
                               std::string(info.param.op->info.name) + "_on_" + info.param.device;
                           for (char& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

}  // namespace
}  // namespace forge
