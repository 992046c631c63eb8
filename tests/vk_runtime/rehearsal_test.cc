// SPDX-License-Identifier: Apache-2.0
// Kernels that a driver compiles at their first dispatch, compiled ahead on devices beside.
#include "vk_runtime/device/rehearsal.h"

#include "tests/vk_runtime/vulkan_test.h"

namespace forge::vk {
namespace {

class RehearsalTest : public VulkanRunTest {};

TEST_F(RehearsalTest, TakesKernelsOnManyThreadsAndWritesNothing) {
  const auto kernel = TransposeShader(1, 40, 50, device_->context()->caps());
  ASSERT_TRUE(kernel.has_value());
  const std::vector<KernelCode> kernels(12, kernel->code);
  EXPECT_EQ(Rehearse(device_->context(), kernels, 3), 0u);
}

}  // namespace
}  // namespace forge::vk
