// SPDX-License-Identifier: Apache-2.0
// Scans, index reductions and sorts with every choice of a schedule and its parameters.
#include <gtest/gtest.h>

#include "codegen/schedules/tuning.h"
#include "ir/cases/bounds.h"
#include "ir/cases/case_inputs.h"
#include "ir/graph/interpreter.h"
#include "ir/ops/reduction/arg_reduce.h"
#include "ir/ops/reduction/scan.h"
#include "ir/ops/sorting/sort.h"
#include "ir/ops/sorting/top_k.h"
#include "tests/support/region_runner.h"

namespace forge::codegen {
namespace {

class AxisChoicesTest : public ::testing::TestWithParam<Caps (*)()> {
 protected:
  // Runs the case with every choice. Returns how many there are.
  static size_t RunAll(const ir::Case& c) {
    const Caps caps = GetParam()();
    const ir::ConcreteCase one = ir::Concretize(c)->front();
    const auto f = testing::FunctionOf(one.op, one.types());
    const auto region = Region::Of(*f, caps);
    EXPECT_TRUE(region.ok()) << region.status();
    const auto inputs = ir::MakeInputs(one);
    const auto operands = inputs->pointers();
    const auto want = ir::Evaluate(one.op, operands);
    EXPECT_TRUE(want.ok()) << want.status();
    const std::vector<Choice> choices = ChoicesFor(*region, 24);
    for (const Choice& choice : choices) {
      SCOPED_TRACE(one.ToText() + " " + choice.ToText());
      const auto got = testing::RunProgram(*region, Generate(*region, choice), operands);
      EXPECT_TRUE(got.ok()) << got.status();
      for (size_t i = 0; got.ok() && i < want->size(); ++i) {
        const absl::Status s = ir::CompareResult(one.op, operands, (*want)[i], (*got)[i], i);
        EXPECT_TRUE(s.ok()) << s;
      }
    }
    return choices.size();
  }
};

TEST_P(AxisChoicesTest, Scans) {
  EXPECT_GT(RunAll({ir::Scan{.exclusive = true}, {"f32[1,512]"}}), 20u);
  EXPECT_GT(RunAll({ir::Scan{ir::ScanKind::kMax, 0, false, true}, {"i64[60,4]"}}), 20u);
  EXPECT_GT(RunAll({ir::ScanWithIndex{}, {"f16[1,512] edges"}}), 20u);
  EXPECT_GT(RunAll({ir::ScanWithIndex{.reverse = true}, {"f32[1,512]"}}), 20u);
}

TEST_P(AxisChoicesTest, IndexReductions) {
  EXPECT_GT(RunAll({ir::ArgReduce{}, {"f32[1,8192] in 0..1"}}), 20u);
  EXPECT_GT(RunAll({ir::ArgReduce{.axis = 0, .select_last_index = true}, {"i16[600,4]"}}), 20u);
}

TEST_P(AxisChoicesTest, Sorts) {
  EXPECT_GT(RunAll({ir::Sort{}, {"f32[2,1000] in -2..2"}}), 3u);
  EXPECT_GT(RunAll({ir::TopK{20, 0}, {"f32[1100,2] in -3..3"}}), 3u);
}

INSTANTIATE_TEST_SUITE_P(Devices, AxisChoicesTest,
                         ::testing::Values(&testing::PoorestCaps, &testing::CpuCaps,
                                           &testing::GpuCaps));

}  // namespace
}  // namespace forge::codegen
