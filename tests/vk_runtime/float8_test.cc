// SPDX-License-Identifier: Apache-2.0
#include "tests/support/float8.h"

#include "ir/graph/interpreter.h"
#include "ir/ops/elementwise/elementwise.h"
#include "runtime/plan/op_runner.h"
#include "tests/vk_runtime/vulkan_test.h"

namespace forge::vk {
namespace {

class Float8CastTest : public VulkanRunTest {
 protected:
  void ExpectCast(const ir::HostValue& x, DType to) {
    const ir::AnyOp op = ir::Cast{.to = to};
    const ir::HostValue* operands[] = {&x};
    const auto want = ir::Evaluate(op, operands);
    ASSERT_OK(want.status());
    const ir::Type in[] = {x.type()};
    auto runner = OpRunner::Create(device_, op, in);
    ASSERT_OK(runner.status());
    const auto got = (*runner)->Run(operands);
    ASSERT_OK(got.status());
    testing::ExpectSameNumbers(x, want->front(), got->front());
  }
  void ExpectCasts() {
    for (const DType t : testing::kFloat8s) {
      ExpectCast(testing::AllCodes(t), DType::kF32);
      ExpectCast(testing::AllCodes(t), DType::kF16);
      ExpectCast(testing::NumbersAround(t), t);
    }
  }
};

TEST_F(Float8CastTest, EveryCodeAndWhatLiesBetween) { ExpectCasts(); }

TEST_F(Float8CastTest, TheSameWithoutBytesInMemory) {
  const ScopedEnvironment hide("FORGE_VK_DISABLE", "storage8,storage16,fp16,int8");
  Open();
  ExpectCasts();
}

}  // namespace
}  // namespace forge::vk
