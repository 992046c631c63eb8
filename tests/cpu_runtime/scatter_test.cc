// SPDX-License-Identifier: Apache-2.0
// Scatters that are large enough for several threads, divided in each way there is.
#include "ir/ops/indexing/scatter.h"

#include <gmock/gmock.h>

#include "ir/cases/bounds.h"
#include "ir/graph/interpreter.h"
#include "tests/cpu_runtime/regions.h"
#include "tests/support/status_matchers.h"

namespace forge::cpu {
namespace {

using ir::Scatter;
using ir::ScatterMode;
using Shape = std::vector<int64_t>;

struct Shapes {
  int64_t axis;
  Shape x, indices, updates;
};
struct Division {
  std::string name;
  Shapes shapes;
};

class ScatterTest : public testing::TestWithParam<Division> {
 protected:
  // Runs a scatter whose indices lie inside, outside and below zero, on one thread and on three.
  void ExpectRight(ScatterMode mode, DType t, DType indices) {
    const Shapes& s = GetParam().shapes;
    const auto extent = static_cast<double>(s.x[static_cast<size_t>(s.axis)]);
    const std::vector in = {Random(t, s.x, 1),
                            Random(indices, s.indices, 2, -extent - 2, extent + 1),
                            Random(t, s.updates, 3)};
    const ir::AnyOp op = Scatter{s.axis, mode};
    const ir::HostValue* operands[] = {&in[0], &in[1], &in[2]};
    FORGE_ASSERT_OK_AND_ASSIGN(const auto want, ir::Evaluate(op, operands));
    for (const int threads : {1, 3}) {
      FORGE_ASSERT_OK_AND_ASSIGN(const RunResult got, RunOn(op, operands, {.threads = threads}));
      EXPECT_EQ(got.kernel, "scatter");
      EXPECT_THAT(ir::CompareResult(op, operands, want[0], got.results[0]), Succeeds())
          << threads << " threads";
    }
  }
};

TEST_P(ScatterTest, SetsTheLast) {
  ExpectRight(ScatterMode::kSet, DType::kF32, DType::kI32);
  ExpectRight(ScatterMode::kSet, DType::kI8, DType::kI64);
}

TEST_P(ScatterTest, Adds) {
  ExpectRight(ScatterMode::kAdd, DType::kF32, DType::kI64);
  ExpectRight(ScatterMode::kAdd, DType::kF16, DType::kI32);
  ExpectRight(ScatterMode::kAdd, DType::kU8, DType::kI32);
}

TEST_P(ScatterTest, KeepsExtremes) {
  ExpectRight(ScatterMode::kMax, DType::kBF16, DType::kI32);
  ExpectRight(ScatterMode::kMin, DType::kU64, DType::kI32);
}

TEST_P(ScatterTest, AddsTheSameInEveryRun) {
  const Shapes& s = GetParam().shapes;
  const auto extent = static_cast<double>(s.x[static_cast<size_t>(s.axis)]);
  const std::vector in = {Random(DType::kF32, s.x, 1),
                          Random(DType::kI32, s.indices, 2, 0, extent - 1),
                          Random(DType::kF32, s.updates, 3)};
  const ir::HostValue* operands[] = {&in[0], &in[1], &in[2]};
  const ir::AnyOp op = Scatter{s.axis, ScatterMode::kAdd};
  FORGE_ASSERT_OK_AND_ASSIGN(const RunResult one, RunOn(op, operands, {.threads = 1}));
  FORGE_ASSERT_OK_AND_ASSIGN(const RunResult several, RunOn(op, operands, {.threads = 3}));
  EXPECT_TRUE(std::ranges::equal(one.results[0].bytes(), several.results[0].bytes()));
}

INSTANTIATE_TEST_SUITE_P(
    Divisions, ScatterTest,
    testing::Values(Division{"outer", {1, {8, 40, 30}, {8, 160, 1}, {8, 160, 30}}},
                    Division{"outer_with_own_indices",
                             {1, {9, 40, 30}, {8, 160, 29}, {8, 160, 29}}},
                    Division{"runs", {0, {50, 700}, {60, 1}, {60, 700}}},
                    Division{"runs_of_two_axes", {0, {50, 7, 100}, {60, 1, 1}, {60, 7, 100}}},
                    Division{"indices", {0, {1000}, {40000}, {40000}}},
                    Division{"indices_of_rows", {0, {1000, 3}, {20000, 3}, {20000, 3}}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace forge::cpu
