// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/tuning.h"

#include <gtest/gtest.h>

#include <set>

#include "base/status.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/reduction/softmax.h"
#include "tests/support/region_runner.h"

namespace forge::codegen {
namespace {

class TuningTest : public ::testing::TestWithParam<Caps (*)()> {
 protected:
  TuningTest()
      : caps_(GetParam()()),
        product_(testing::FunctionOf(ir::MatMul{}, Operands(64, 32))),
        region_(Region::Of(*product_, caps_)) {}
  static ir::Types Operands(int64_t m, int64_t k) {
    return {ir::Type::Tensor(DType::kF32, {m, k}), ir::Type::Tensor(DType::kF32, {k, 48})};
  }
  uint64_t KeyOf(const ir::AnyOp& op, const ir::Types& in) {
    const auto f = testing::FunctionOf(op, in);
    return *TuningKey(*Region::Of(*f, caps_));
  }

  Caps caps_;
  std::unique_ptr<ir::Function> product_;
  absl::StatusOr<Region> region_;
};

TEST_P(TuningTest, TheDefaultComesFirstAndEachChoiceOnce) {
  const std::vector<Choice> all = ChoicesFor(*region_, 1000);
  ASSERT_GT(all.size(), 10u);
  EXPECT_EQ(all[0].ToText(), DefaultChoice(*region_)->ToText());
  EXPECT_EQ(Generate(*region_, all[0]).kernel, Generate(*region_)->kernel);
  std::set<std::string> words, schedules;
  for (const Choice& c : all) {
    EXPECT_TRUE(words.insert(c.ToText()).second) << c.ToText();
    schedules.emplace(c.schedule->name);
  }
  EXPECT_GT(schedules.size(), caps_.runs_on_cpu ? 1u : 0u);
  EXPECT_EQ(ChoicesFor(*region_, 3).size(), 3u);
  EXPECT_TRUE(ChoicesFor(*region_, 0).empty());
}

TEST_P(TuningTest, WordsAreReadBack) {
  for (const Choice& c : ChoicesFor(*region_, 50)) {
    const auto read = ParseChoice(*region_, c.ToText());
    ASSERT_TRUE(read.ok()) << Message(read.status());
    EXPECT_EQ(read->ToText(), c.ToText());
  }
}

TEST_P(TuningTest, RefusesWhatIsNoChoice) {
  for (const char* text :
       {"", "(", "nothing", "nothing(rows=4)", "softmax_rows()", "matmul_simple(rows=3)",
        "matmul_simple(rows=)", "matmul_simple(rows=4x)", "matmul_simple(height=4)",
        "matmul_simple(rows=99999999999999999999)", "matmul_simple(=)"})
    EXPECT_FALSE(ParseChoice(*region_, text).ok()) << text;
  EXPECT_TRUE(ParseChoice(*region_, "matmul_simple()").ok());
}

TEST_P(TuningTest, SharesNoTilesWhereThereAreNone) {
  const ir::Types none = {ir::Type::Tensor(DType::kF32, {0, 64, 64}),
                          ir::Type::Tensor(DType::kF32, {0, 64, 64})};
  const auto product = testing::FunctionOf(ir::MatMul{}, none);
  const auto region = Region::Of(*product, caps_);
  ASSERT_TRUE(region.ok()) << Message(region.status());
  EXPECT_FALSE(ParseChoice(*region, "matmul_shared(workgroups=32)").ok());
}

TEST_P(TuningTest, MovesInTheSimplestWayWhereAsked) {
  const ir::Types in = {ir::Type::Tensor(DType::kF32, {64, 128})};
  const auto turned = testing::FunctionOf(ir::Transpose{.permutation = {1, 0}}, in);
  const auto region = Region::Of(*turned, caps_);
  ASSERT_TRUE(region.ok()) << Message(region.status());
  EXPECT_EQ(DefaultChoice(*region)->schedule->name, "transpose");
  EXPECT_EQ(SimplestChoice(*region)->schedule->name, "elementwise");
}

TEST_P(TuningTest, KeysTellKernelsApart) {
  // By what is computed, not by what it is called.
  ir::Function named("another");
  ir::Values operands;
  for (const ir::Type& t : Operands(64, 32))
    operands.push_back(named.Argument(fmt::format("of_{}", operands.size()), t));
  named.Return("product", named.Add(ir::MatMul{}, operands)[0]);
  EXPECT_EQ(*TuningKey(*Region::Of(named, caps_)), KeyOf(ir::MatMul{}, Operands(64, 32)));
  EXPECT_EQ(KeyOf(ir::MatMul{}, Operands(64, 32)), KeyOf(ir::MatMul{}, Operands(64, 32)));
  EXPECT_NE(KeyOf(ir::MatMul{}, Operands(64, 32)), KeyOf(ir::MatMul{}, Operands(64, 40)));
  EXPECT_NE(KeyOf(ir::MatMul{}, Operands(64, 32)),
            KeyOf(ir::Softmax{}, {ir::Type::Tensor(DType::kF32, {64, 32})}));
}

INSTANTIATE_TEST_SUITE_P(Devices, TuningTest,
                         ::testing::Values(&testing::PoorestCaps, &testing::CpuCaps,
                                           &testing::GpuCaps));

}  // namespace
}  // namespace forge::codegen
