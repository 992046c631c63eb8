// SPDX-License-Identifier: Apache-2.0
// Kernels that a driver compiles at their first dispatch, compiled ahead on devices beside.
#include "vk_runtime/device/pipeline_warm_up.h"

#include "tests/vk_runtime/vulkan_test.h"

namespace forge::vk {
namespace {

class PipelineWarmUpTest : public VulkanRunTest {};

TEST_F(PipelineWarmUpTest, TakesKernelsOnManyThreadsAndWritesNothing) {
  const auto kernel = TransposeShader(1, 40, 50, device_->context()->caps());
  ASSERT_TRUE(kernel.has_value());
  const std::vector<KernelCode> kernels(12, kernel->code);
  EXPECT_EQ(WarmUpPipelines(device_->context(), kernels, 3), 0u);
}

}  // namespace
}  // namespace forge::vk
