// SPDX-License-Identifier: Apache-2.0
// A device that is lost in the middle of work: an error in words, and then another device.
#include "tests/runtime/models.h"
#include "tests/support/fault_injection.h"
#include "tests/support/status_matchers.h"
#include "tests/vk_runtime/vulkan_test.h"

namespace forge::vk {
namespace {

class LostDeviceTest : public VulkanRunTest {
 protected:
  absl::StatusOr<std::vector<double>> Run(Session& session) {
    const NamedTensor x{"x", Tensor({1, 3}, {1, -50, 3})};
    FORGE_ASSIGN_OR_RETURN(const auto y, session.Run({&x, 1}));
    return Numbers(y[0].value);
  }
  std::unique_ptr<Session> NewSession() {
    auto session = Session::Create(testing::AddingModel(), device_);
    EXPECT_THAT(session, Succeeds());
    return *std::move(session);
  }

  // The call is of a Session that works until then.
  void ExpectAnErrorAndANewSession(const std::string& function, int call) {
    const ScopedEnvironments layer(testing::FaultInjection(FORGE_BINARY_DIR, ""));
    Open();
    const std::vector<double> right = {11, 0, 33};
    const auto session = NewSession();
    EXPECT_EQ(*Run(*session), right);
    absl::StatusOr<std::vector<double>> last;
    {
      const ScopedEnvironment lose("FORGE_LOSE", fmt::format("{}:{}", function, call));
      for (int runs = 0; runs < 1000; ++runs)
        if (last = Run(*session); !last.ok()) break;
    }
    const std::string lost = "the device was lost in " + function;
    EXPECT_THAT(last, Fails(absl::StatusCode::kAborted, lost));
    EXPECT_THAT(last, Fails(absl::StatusCode::kAborted, device_->info().name));
    EXPECT_THAT(Run(*session), Fails(absl::StatusCode::kAborted, lost));
    EXPECT_THAT(device_->Health(), Fails(absl::StatusCode::kAborted, lost));

    const DeviceRef old = device_;
    const auto opened = driver_->Open(0, {.threads = 2, .cache = false});
    ASSERT_THAT(opened, Succeeds());
    device_ = std::static_pointer_cast<VulkanDevice>(*opened);
    EXPECT_EQ(*Run(*NewSession()), right);
    EXPECT_FALSE(old->Health().ok());
  }
};

TEST_F(LostDeviceTest, ANewSessionWorksAfterALostSubmission) {
  ExpectAnErrorAndANewSession("vkQueueSubmit", 1);
  ExpectAnErrorAndANewSession("vkQueueSubmit", 3);
}

TEST_F(LostDeviceTest, ANewSessionWorksAfterALostWait) {
  if (!device_->context()->abilities().timeline_semaphore)
    GTEST_SKIP() << "the device has no timeline semaphores";
  ExpectAnErrorAndANewSession("vkGetSemaphoreCounterValue", 1);
  ExpectAnErrorAndANewSession("vkWaitSemaphores", 1);
}

TEST_F(LostDeviceTest, ANewSessionWorksAfterALostWaitForAFence) {
  const ScopedEnvironment fences("FORGE_VK_DISABLE", "timeline_semaphore");
  ExpectAnErrorAndANewSession("vkGetFenceStatus", 1);
  ExpectAnErrorAndANewSession("vkWaitForFences", 1);
}

}  // namespace
}  // namespace forge::vk
