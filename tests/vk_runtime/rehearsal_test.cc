// SPDX-License-Identifier: Apache-2.0
// Kernels that a driver compiles at their first dispatch, compiled ahead on devices beside.
#include "vk_runtime/rehearsal.h"

#include <atomic>
#include <thread>

#include "tests/vk_runtime/vulkan_test.h"

namespace forge::vk {
namespace {

class RehearsalTest : public VulkanRunTest {};

TEST_F(RehearsalTest, TakesKernelsFromManyThreadsAndWritesNothing) {
  const auto kernel = TransposeShader(1, 40, 50, device_->context()->caps());
  ASSERT_TRUE(kernel.has_value());
  Rehearsal rehearsal(device_->context());
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 4; ++i) failed += !rehearsal.Run(*kernel).ok();
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(failed, 0);
}

}  // namespace
}  // namespace forge::vk
