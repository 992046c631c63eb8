// SPDX-License-Identifier: Apache-2.0
// The schedules of scatter: which one a shape gets, and what only some of them meet.
#include "ir/ops/indexing/scatter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/ops/elementwise/scalar_math.h"
#include "tests/support/region_runner.h"
#include "tests/support/status_matchers.h"

namespace forge::codegen {
namespace {

using ir::Scatter;
using ir::ScatterMode;
using ir::Value;

ir::HostValue Tensor(DType t, std::vector<int64_t> shape, const std::vector<double>& numbers) {
  ir::HostValue v = *ir::HostValue::Zeros(t, shape);
  for (size_t i = 0; i < numbers.size(); ++i) v.Set(static_cast<int64_t>(i), numbers[i]);
  return v;
}

struct Run {
  std::string kernel;
  size_t launches = 0;
  std::vector<double> y;
};

// Runs a body of the arguments x, indices and updates.
absl::StatusOr<Run> RunBody(const ir::Function& body, const Caps& caps,
                            std::span<const ir::HostValue> in) {
  FORGE_ASSIGN_OR_RETURN(const Region region, Region::Of(body, caps));
  FORGE_ASSIGN_OR_RETURN(const Program program, Generate(region));
  std::vector<const ir::HostValue*> operands;
  for (const ir::HostValue& v : in) operands.push_back(&v);
  FORGE_ASSIGN_OR_RETURN(const auto out, testing::RunProgram(region, program, operands));
  Run run{program.kernel, program.launches.size(), {}};
  for (int64_t i = 0; i < out[0].elements(); ++i) run.y.push_back(out[0].f64(i));
  return run;
}

absl::StatusOr<Run> RunScatter(const Scatter& op, const Caps& caps,
                               const std::vector<ir::HostValue>& in) {
  const auto f = testing::FunctionOf(op, std::vector{in[0].type(), in[1].type(), in[2].type()});
  FORGE_RETURN_IF_ERROR(f->status());
  return RunBody(*f, caps, in);
}

// Numbers 0, 1, 2 ... modulo `modulus`.
std::vector<double> Counting(size_t count, int modulus) {
  std::vector<double> out;
  for (size_t i = 0; i < count; ++i) out.push_back(static_cast<double>(i % modulus));
  return out;
}

class ScatterScheduleTest : public ::testing::TestWithParam<Caps (*)()> {
 protected:
  Caps caps_ = GetParam()();
};

TEST_P(ScatterScheduleTest, ManyColumnsGetAnInvocationEach) {
  const auto run = RunScatter(Scatter{.axis = 0, .mode = ScatterMode::kAdd}, caps_,
                              {Tensor(DType::kF32, {2, 5000}, {}), Tensor(DType::kI32, {40, 1}, {}),
                               Tensor(DType::kF32, {40, 5000}, Counting(200000, 7))});
  ASSERT_THAT(run.status(), Succeeds());
  EXPECT_EQ(run->kernel, "scatter_columns_x4");
  EXPECT_EQ(run->launches, 1u);
}

TEST_P(ScatterScheduleTest, TheLastOfManyUpdatesStays) {
  std::vector<double> want(5), updates = Counting(1000, 1000);
  for (size_t i = 0; i < updates.size(); ++i) want[i % 5] = updates[i];
  const auto run =
      RunScatter(Scatter{}, caps_,
                 {Tensor(DType::kF16, {5}, {}), Tensor(DType::kI64, {1000}, Counting(1000, 5)),
                  Tensor(DType::kF16, {1000}, updates)});
  ASSERT_THAT(run.status(), Succeeds());
  EXPECT_EQ(run->kernel, "scatter_words");
  EXPECT_EQ(run->y, want);
}

TEST_P(ScatterScheduleTest, SumsOfMixedMagnitudesLoseNothingThatF32Keeps) {
  // 2^20 and 1 add up exactly, as do tiny numbers alone.
  std::vector<double> updates(100, 1.0);
  for (size_t i = 1; i < 100; i += 2) updates[i] = -0x1p-100 * static_cast<double>(i);
  updates[40] = 0x1p20;
  double odd = 0;
  for (size_t i = 1; i < 100; i += 2) odd += updates[i];
  const auto run =
      RunScatter(Scatter{.mode = ScatterMode::kAdd}, caps_,
                 {Tensor(DType::kF32, {2}, {-3, 0}), Tensor(DType::kI32, {100}, Counting(100, 2)),
                  Tensor(DType::kF32, {100}, updates)});
  ASSERT_THAT(run.status(), Succeeds());
  EXPECT_EQ(run->kernel, "scatter_sum");
  EXPECT_EQ(run->y, (std::vector<double>{0x1p20 + 49 - 3, odd}));
}

TEST_P(ScatterScheduleTest, SumsCarryFromWordToWord) {
  // Beside 1, these numbers are about half of a lower word each; what they lose is below 2^-24.
  const double small = 0x1p-23 * (1 + 0x1p-10);
  std::vector<double> updates(100, small);
  for (size_t i = 1; i < 100; i += 2) updates[i] = -small;
  updates[40] = 1;
  updates[41] = -1;
  const auto run =
      RunScatter(Scatter{.mode = ScatterMode::kAdd}, caps_,
                 {Tensor(DType::kF32, {2}, {}), Tensor(DType::kI32, {100}, Counting(100, 2)),
                  Tensor(DType::kF32, {100}, updates)});
  ASSERT_THAT(run.status(), Succeeds());
  EXPECT_EQ(run->kernel, "scatter_sum");
  EXPECT_EQ(run->y, (std::vector<double>{1 + 49 * 0x1p-23, -1 - 49 * 0x1p-23}));
}

TEST_P(ScatterScheduleTest, SumsKeepInfinitiesAndNan) {
  const double inf = INFINITY;
  std::vector<double> updates(50, 1.0), at(50, 0.0);
  at[3] = 1, updates[3] = inf;
  at[4] = 2, updates[4] = -inf;
  at[5] = at[6] = 3, updates[5] = inf, updates[6] = -inf;
  at[7] = 4, updates[7] = NAN;
  at[8] = at[9] = 5, updates[8] = inf, updates[9] = 3e38;
  at[10] = at[11] = 6, updates[10] = updates[11] = 3e38;
  const auto run = RunScatter(Scatter{.mode = ScatterMode::kAdd}, caps_,
                              {Tensor(DType::kF32, {8}, {0, 0, 0, 0, 0, 0, 0, -inf}),
                               Tensor(DType::kI32, {50}, at), Tensor(DType::kF32, {50}, updates)});
  ASSERT_THAT(run.status(), Succeeds());
  EXPECT_EQ(run->kernel, "scatter_sum");
  EXPECT_EQ(run->y[0], 41);
  EXPECT_EQ(run->y[1], inf);
  EXPECT_EQ(run->y[2], -inf);
  EXPECT_TRUE(std::isnan(run->y[3]));
  EXPECT_TRUE(std::isnan(run->y[4]));
  EXPECT_EQ(run->y[5], inf);
  EXPECT_EQ(run->y[6], inf);
  EXPECT_EQ(run->y[7], -inf);
}

TEST_P(ScatterScheduleTest, NarrowSumsAreRoundedOnce) {
  // In steps of f16, 2048 + 1 stays 2048.
  for (const int64_t n : {8, 1000}) {
    const auto run = RunScatter(Scatter{.mode = ScatterMode::kAdd}, caps_,
                                {Tensor(DType::kF16, {3}, {0, 2048, 5}),
                                 Tensor(DType::kI32, {n}, std::vector<double>(n, 1)),
                                 Tensor(DType::kF16, {n}, std::vector<double>(n, 1))});
    ASSERT_THAT(run.status(), Succeeds());
    EXPECT_EQ(run->y, (std::vector<double>{0, 2048.0 + static_cast<double>(n), 5})) << run->kernel;
  }
}

TEST_P(ScatterScheduleTest, CopiesATensorThatHasOtherReaders) {
  ir::Function f("f");
  const Value x = f.Argument("x", ir::Type::Tensor(DType::kF32, {4}));
  const Value indices = f.Argument("i", ir::Type::Tensor(DType::kI32, {4}));
  f.Return("y", f(Scatter{.mode = ScatterMode::kAdd}, {x, indices, x}));
  const std::vector in = {Tensor(DType::kF32, {4}, {1, 2, 3, 4}),
                          Tensor(DType::kI32, {4}, {3, 3, -4, 4})};
  const auto run = RunBody(f, caps_, in);
  ASSERT_THAT(run.status(), Succeeds());
  EXPECT_EQ(run->launches, 2u);
  EXPECT_EQ(run->y, (std::vector<double>{4, 2, 3, 7}));
}

TEST_P(ScatterScheduleTest, RefusesWhatFollows) {
  ir::Function f("f");
  const Value x = f.Argument("x", ir::Type::Tensor(DType::kF32, {4}));
  const Value indices = f.Argument("i", ir::Type::Tensor(DType::kI32, {4}));
  const Value updates = f.Argument("u", ir::Type::Tensor(DType::kF32, {4}));
  f.Return("y", ir::exp(f(Scatter{}, {x, indices, updates})));
  const auto region = Region::Of(f, caps_);
  ASSERT_THAT(region.status(), Succeeds());
  EXPECT_THAT(CanGenerate(*region).text(), ::testing::HasSubstr("others read the tensor"));
}

TEST(ScatterOnCpuTest, AFewCoresWalkColumnsUnlessTheyAreLong) {
  const auto kernel = [](int64_t cores, int64_t count) {
    Caps caps = testing::CpuCaps();
    caps.cores = cores;
    const ir::Type x = ir::Type::Tensor(DType::kF32, {8});
    const ir::Type indices = ir::Type::Tensor(DType::kI32, {count});
    const auto f =
        testing::FunctionOf(Scatter{.mode = ScatterMode::kAdd},
                            std::vector{x, indices, ir::Type::Tensor(DType::kF32, {count})});
    return CanGenerate(*Region::Of(*f, caps)).text();
  };
  EXPECT_EQ(kernel(4, 1 << 20), "scatter_columns");
  EXPECT_EQ(kernel(4, (1 << 20) + 1), "scatter_sum");
  EXPECT_EQ(kernel(16, 1000), "scatter_sum");
}

INSTANTIATE_TEST_SUITE_P(Devices, ScatterScheduleTest,
                         ::testing::Values(&testing::GpuCaps, &testing::PoorestCaps));

}  // namespace
}  // namespace forge::codegen
