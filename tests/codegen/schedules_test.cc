// SPDX-License-Identifier: Apache-2.0
// Every case of every op that a schedule takes, on the kernel machine.
#include <gtest/gtest.h>

#include "ir/cases/bounds.h"
#include "ir/cases/case_inputs.h"
#include "ir/graph/interpreter.h"
#include "tests/support/case_seeds.h"
#include "tests/support/region_runner.h"
#include "tests/support/status_matchers.h"

namespace forge::codegen {
namespace {

using ::forge::testing::FunctionOf;

struct Tally {
  int ran = 0, refused = 0;
};

void RunCase(const ir::ConcreteCase& c, const Caps& caps, Tally& tally) {
  SCOPED_TRACE(c.ToText());
  const auto f = FunctionOf(c.op, c.types());
  ASSERT_TRUE(f->status().ok()) << f->status();
  const auto region = Region::Of(*f, caps);
  if (!region.ok() || !CanGenerate(*region)) {
    ++tally.refused;
    return;
  }
  const auto program = Generate(*region);
  ASSERT_TRUE(program.ok()) << program.status();
  const auto inputs = ir::MakeInputs(c);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  const auto operands = inputs->pointers();
  const auto want = ir::Evaluate(c.op, operands);
  ASSERT_TRUE(want.ok()) << want.status();
  std::vector<const ir::HostValue*> given;
  for (const ir::HostValue* v : operands)
    if (v != nullptr) given.push_back(v);
  const auto got = testing::RunProgram(*region, *program, given);
  ASSERT_TRUE(got.ok()) << program->kernel << ": " << got.status();
  for (size_t i = 0; i < want->size(); ++i) {
    const absl::Status s = ir::CompareResult(c.op, operands, (*want)[i], (*got)[i], i);
    EXPECT_TRUE(s.ok()) << program->kernel << ": " << s;
  }
  ++tally.ran;
}

// Another one for each of the devices, so that together they see each case in more types.
uint64_t SeedOf(const Caps& caps) {
  return (caps.runs_on_cpu ? 1
          : caps.f64       ? 2
                           : 0) +
         (caps.max_operand_bytes < Caps().max_operand_bytes ? 1 : 0);
}

class EveryCase : public ::testing::TestWithParam<std::tuple<const ir::OpDef*, Caps (*)()>> {};

TEST_P(EveryCase, AgreesWithTheReference) {
  const auto& [def, caps_of] = GetParam();
  const Caps caps = caps_of();
  FORGE_ASSERT_OK_AND_ASSIGN(const auto cases, CasesInTurns(*def, SeedOf(caps)));
  Tally tally;
  for (const ir::ConcreteCase& c : cases)
    if (!c.bench) RunCase(c, caps, tally);
  RecordProperty("ran", tally.ran);
  RecordProperty("refused", tally.refused);
}

std::string CaseName(const ::testing::TestParamInfo<EveryCase::ParamType>& info) {
  const Caps caps = std::get<1>(info.param)();
  return std::string(std::get<0>(info.param)->info.name) +
         (caps.runs_on_cpu ? "_cpu"
          : caps.f64       ? "_gpu"
                           : "_poorest") +
         (caps.max_operand_bytes < Caps().max_operand_bytes ? "_in_parts" : "");
}

INSTANTIATE_TEST_SUITE_P(
    Ops, EveryCase,
    ::testing::Combine(::testing::ValuesIn(ir::AllOps().begin(), ir::AllOps().end()),
                       ::testing::Values(&testing::PoorestCaps, &testing::CpuCaps,
                                         &testing::GpuCaps, &testing::SmallRangeCaps,
                                         &testing::PoorSmallRangeCaps)),
    CaseName);

}  // namespace
}  // namespace forge::codegen
