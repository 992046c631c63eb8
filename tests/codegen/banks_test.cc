// SPDX-License-Identifier: Apache-2.0
// Tiles in shared memory are padded, so that invocations meet in different banks.
#include <gtest/gtest.h>

#include "codegen/schedules/tuning.h"
#include "ir/ops/fft/dft.h"
#include "ir/ops/product/attention_gradient.h"
#include "ir/ops/product/matmul.h"
#include "tests/support/region_runner.h"
#include "tests/support/status_matchers.h"

namespace forge::codegen {
namespace {

// Waits for a bank, for each access to shared memory.
double WaitsOf(const ir::AnyOp& op, const ir::Types& in, std::string_view schedule) {
  const auto f = testing::FunctionOf(op, in);
  const Caps caps = testing::GpuCaps();
  const absl::StatusOr<Region> region = Region::Of(*f, caps);
  EXPECT_THAT(region, Succeeds());
  const absl::StatusOr<Choice> choice = ParseChoice(*region, fmt::format("{}()", schedule));
  EXPECT_THAT(choice, Succeeds());
  if (!choice.ok()) return 0;
  std::vector<ir::HostValue> operands;
  std::vector<const ir::HostValue*> pointers;
  for (const ir::Type& t : in)
    operands.push_back(*ir::HostValue::Zeros(t.dtype(), ir::Constants(t.shape())));
  for (const ir::HostValue& v : operands) pointers.push_back(&v);
  testing::MachineOptions::Banks banks;
  EXPECT_THAT(testing::RunProgram(*region, Generate(*region, *choice), pointers, {.banks = &banks}),
              Succeeds());
  EXPECT_GT(banks.accesses, 0);
  return static_cast<double>(banks.waits) /
         static_cast<double>(std::max<int64_t>(banks.accesses, 1));
}

ir::Type Floats(ir::Dims shape) { return ir::Type::Tensor(DType::kF32, std::move(shape)); }

// They wait at 0.46 and, transposed, 0.38 of the accesses: drivers load side by side at once what
// is counted here element by element. Without padding: 0.54.
TEST(BanksTest, ProductsRarelyWait) {
  const ir::Types in = {Floats({64, 64}), Floats({64, 64})};
  for (const bool transpose_b : {false, true})
    EXPECT_LT(WaitsOf(ir::MatMul{.transpose_b = transpose_b}, in, "matmul_shared"), 0.5);
}

// At 0.44. Without padding: 0.98.
TEST(BanksTest, AttentionRarelyWaits) {
  const ir::Type x = Floats({1, 64, 64});
  EXPECT_LT(WaitsOf(ir::Attention{}, {x, x, x}, "attention_shared"), 0.6);
}

// At 0.27.
TEST(BanksTest, AttentionGradientsRarelyWait) {
  const ir::Type x = Floats({1, 64, 64}), row = Floats({1, 64, 1});
  EXPECT_LT(WaitsOf(ir::AttentionGradient{}, {x, x, x, row, x, row}, "attention_gradient"), 0.4);
}

// At 0.50. Without padding: 0.88.
TEST(BanksTest, TransformsRarelyWait) {
  const ir::Type x = Floats({2, 1024});
  EXPECT_LT(WaitsOf(ir::Dft{}, {x, x}, "fourier"), 0.6);
}

}  // namespace
}  // namespace forge::codegen
