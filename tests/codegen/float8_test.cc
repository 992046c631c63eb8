// SPDX-License-Identifier: Apache-2.0
// Floats of a byte are emulated by integer operations: every code, and every number near to one.
#include "tests/support/float8.h"

#include <gtest/gtest.h>

#include "codegen/schedules/tuning.h"
#include "ir/graph/interpreter.h"
#include "ir/ops/elementwise/elementwise.h"
#include "tests/support/region_runner.h"
#include "tests/support/status_matchers.h"

namespace forge::codegen {
namespace {

class Float8Test : public ::testing::TestWithParam<Caps (*)()> {
 protected:
  static void ExpectCast(const ir::HostValue& x, DType to) {
    const ir::AnyOp op = ir::Cast{.to = to};
    const ir::Type in[] = {x.type()};
    const auto f = testing::FunctionOf(op, in);
    const Caps caps = GetParam()();
    FORGE_ASSERT_OK_AND_ASSIGN(const Region region, Region::Of(*f, caps));
    const ir::HostValue* operands[] = {&x};
    FORGE_ASSERT_OK_AND_ASSIGN(const auto want, ir::Evaluate(op, operands));
    for (const Choice& choice : ChoicesFor(region, 8)) {
      const Program program = Generate(region, choice);
      FORGE_ASSERT_OK_AND_ASSIGN(const auto got, testing::RunProgram(region, program, operands));
      testing::ExpectSameNumbers(x, want[0], got[0]);
    }
  }
};

TEST_P(Float8Test, EveryCodeIsItsNumber) {
  for (const DType t : testing::kFloat8s)
    for (const DType to : {DType::kF32, DType::kF16, DType::kBF16, DType::kI32, DType::kBool})
      ExpectCast(testing::AllCodes(t), to);
}

TEST_P(Float8Test, NumbersRoundToTheNearestCode) {
  for (const DType t : testing::kFloat8s) ExpectCast(testing::NumbersAround(t), t);
}

TEST_P(Float8Test, CodesOfOneFormatAreCastToTheOther) {
  ExpectCast(testing::AllCodes(DType::kF8E4M3), DType::kF8E5M2);
  ExpectCast(testing::AllCodes(DType::kF8E5M2), DType::kF8E4M3);
}

// Several share a word, of which an odd number leaves a part; a store leaves its neighbours alone.
TEST_P(Float8Test, ElementsOfLessThanAByteAreCast) {
  for (const DType t : {DType::kU2, DType::kU4, DType::kI2, DType::kI4, DType::kF4E2M1}) {
    ir::HostValue x = *ir::HostValue::Zeros(DType::kF32, std::vector<int64_t>{43});
    for (int64_t i = 0; i < 43; ++i) x.Set(i, 0.75 * static_cast<double>(i) - 16);
    ExpectCast(x, t);
    ir::HostValue codes = *ir::HostValue::Zeros(t, std::vector<int64_t>{19});
    for (uint8_t& byte : codes.mutable_bytes())
      byte = static_cast<uint8_t>(&byte - codes.bytes().data()) * 29 + 0x1b;
    for (const DType to : {DType::kF32, DType::kI32, DType::kU8}) ExpectCast(codes, to);
  }
}

std::string DeviceName(const ::testing::TestParamInfo<Caps (*)()>& info) {
  constexpr const char* kNames[] = {"poorest", "cpu", "gpu"};
  return kNames[info.index];
}
INSTANTIATE_TEST_SUITE_P(Devices, Float8Test,
                         ::testing::Values(testing::PoorestCaps, testing::CpuCaps,
                                           testing::GpuCaps),
                         DeviceName);

}  // namespace
}  // namespace forge::codegen
