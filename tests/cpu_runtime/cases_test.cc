// SPDX-License-Identifier: Apache-2.0
// Every op's cases against the op's own evaluator.
#include "ir/interpreter.h"
#include "ir/ops/bounds.h"
#include "ir/ops/case_inputs.h"
#include "tests/cpu_runtime/run.h"

namespace forge::cpu {
namespace {

using ir::HostValue;

void CheckCase(const ir::ConcreteCase& c, const RunOptions& options) {
  const absl::StatusOr<ir::CaseInputs> inputs = ir::MakeInputs(c);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  const std::vector<const HostValue*> in = inputs->pointers();
  const absl::StatusOr<std::vector<HostValue>> expected = ir::Evaluate(c.op, in);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const absl::StatusOr<RunResult> got = RunOn(c.op, in, options);
  ASSERT_TRUE(got.ok()) << got.status();
  for (size_t i = 0; i < expected->size(); ++i) {
    const absl::Status s = ir::CompareResult(c.op, in, (*expected)[i], got->results[i], i);
    EXPECT_TRUE(s.ok()) << got->kernel << ": " << s;
  }
}

class CpuCases : public testing::TestWithParam<const ir::OpDef*> {};

TEST_P(CpuCases, AgreeWithTheEvaluator) {
  const auto device = OpenCpu();
  const absl::StatusOr<std::vector<ir::ConcreteCase>> cases = ir::ConcreteCases(*GetParam());
  ASSERT_TRUE(cases.ok()) << cases.status();
  for (const ir::ConcreteCase& c : *cases) {
    if (!c.refuse.empty() || c.bench) continue;
    SCOPED_TRACE(c.ToText());
    const ir::Types in = c.types();
    const absl::StatusOr<ir::Types> out = c.op.Infer(in);
    ASSERT_TRUE(out.ok()) << out.status();
    const Verdict v = device->target().Supports({c.op, in, *out});
    if (!v && c.op.def().decompose) continue;
    ASSERT_TRUE(v) << v.text();
    CheckCase(c, {});
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, CpuCases, testing::ValuesIn(ir::AllOps().begin(), ir::AllOps().end()),
                         [](const auto& info) { return std::string(info.param->info.name); });

}  // namespace
}  // namespace forge::cpu
