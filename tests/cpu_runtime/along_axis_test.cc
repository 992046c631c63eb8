// SPDX-License-Identifier: Apache-2.0
// Scans, index reductions and sorts of rows that threads divide, with NaN and equal elements at
// places where cases have none.
#include <cmath>
#include <limits>

#include "ir/cases/bounds.h"
#include "ir/graph/interpreter.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/reduction/arg_reduce.h"
#include "ir/ops/reduction/scan.h"
#include "ir/ops/sorting/sort.h"
#include "ir/ops/sorting/top_k.h"
#include "tests/cpu_runtime/regions.h"

namespace forge::cpu {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(),
                 kInf = std::numeric_limits<double>::infinity();

// A row of numbers in -1..1, many of them equal, with others at some places.
ir::HostValue Row(int64_t n, const std::vector<std::pair<int64_t, double>>& others,
                  DType t = DType::kF32) {
  ir::HostValue v = *ir::HostValue::Zeros(t, std::vector<int64_t>{n});
  for (int64_t i = 0; i < n; ++i) v.Set(i, static_cast<double>(i * 7919 % 2003) / 1001.5 - 1);
  for (const auto& [at, number] : others) v.Set(at, number);
  return v;
}

class AlongAxisTest : public testing::TestWithParam<int> {
 protected:
  // Compares the kernel with the op's evaluator.
  static void Check(const ir::AnyOp& op, const ir::HostValue& x) {
    SCOPED_TRACE(op.ToText());
    const ir::HostValue* in[] = {&x};
    const absl::StatusOr<RunResult> got = RunOn(op, in, {.threads = GetParam()});
    ASSERT_TRUE(got.ok()) << got.status();
    const auto want = ir::Evaluate(op, in);
    ASSERT_TRUE(want.ok()) << want.status();
    for (size_t i = 0; i < want->size(); ++i) {
      const absl::Status s = ir::CompareResult(op, in, (*want)[i], got->results[i], i);
      EXPECT_TRUE(s.ok()) << got->kernel << ": " << s;
    }
  }
};

TEST_P(AlongAxisTest, TopKSeesANanThatComesLate) {
  const ir::HostValue x = Row(50000, {{30000, kNan}, {49990, kNan}, {40000, kInf}, {123, -kInf}});
  for (const bool largest : {false, true})
    for (const int64_t k : {1, 3, 700}) Check(ir::TopK{k, 0, largest}, x);
}

TEST_P(AlongAxisTest, SortsKeepEqualElementsInOrder) {
  for (const DType t : {DType::kF32, DType::kF64, DType::kI32, DType::kU8})
    for (const bool descending : {false, true})
      Check(ir::Sort{0, descending}, Row(70000, {{10, 0.0}, {69000, -0.0}, {5, 200}}, t));
  Check(ir::Sort{0, true}, Row(70000, {{50000, kNan}, {1, kNan}, {69999, -kInf}}));
}

TEST_P(AlongAxisTest, ScansGoOnWhereAnotherThreadEnds) {
  const ir::HostValue x = Row(60000, {{100, 2}, {40000, 2}, {50000, kNan}, {59000, 1}});
  const ir::HostValue numbers = Row(60000, {{100, -30}, {40000, 25}});
  for (const bool reverse : {false, true}) {
    for (const ir::ScanKind kind : {ir::ScanKind::kMax, ir::ScanKind::kMin}) {
      Check(ir::Scan{kind, 0, false, reverse}, x);
      Check(ir::ScanWithIndex{kind, 0, reverse}, x);
      Check(ir::ScanWithIndex{kind, 0, reverse}, numbers);
    }
    Check(ir::Scan{ir::ScanKind::kLogSumExp, 0, false, reverse}, numbers);
    for (const bool exclusive : {false, true})
      Check(ir::Scan{ir::ScanKind::kSum, 0, exclusive, reverse}, numbers);
  }
}

TEST_P(AlongAxisTest, IndicesOfExtremesAreTheFirstOrTheLast) {
  const ir::HostValue x = Row(120000, {{700, 2}, {90000, 2}, {100000, -2}, {30000, -2}});
  const ir::HostValue nan = Row(120000, {{700, 2}, {90000, kNan}, {100000, kNan}});
  for (const auto kind : {ir::ArgReduceKind::kMax, ir::ArgReduceKind::kMin})
    for (const bool last : {false, true})
      for (const ir::HostValue& row : {x, nan})
        Check(ir::ArgReduce{.kind = kind, .axis = 0, .select_last_index = last}, row);
}

// The result made of the indices has the type of the elements, which are read after it is stored.
TEST(SortRegionTest, StoresNoResultOverElementsThatAnotherReads) {
  Region region;
  const ir::Value x = region.Argument(ir::Type::Tensor(DType::kI64, {8}));
  const ir::Value y = region.Argument(ir::Type::Tensor(DType::kI64, {8}));
  const ir::Values sorted = region.body().Add(ir::AnyOp(ir::Sort{.axis = 0}), std::array{x});
  region.Return(sorted[1] + y);
  region.Return(region.body()(ir::Cast{DType::kF32}, {sorted[0]}));
  ExpectAgrees(region, {Random(DType::kI64, {8}, 1, 10, 20), Random(DType::kI64, {8}, 2, 30, 40)});
}

INSTANTIATE_TEST_SUITE_P(Threads, AlongAxisTest, testing::Values(1, 2, 3));

}  // namespace
}  // namespace forge::cpu
