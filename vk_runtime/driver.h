// SPDX-License-Identifier: Apache-2.0
// The driver that the plug-in exports: lists and opens Vulkan devices.
#pragma once
#include "vk_runtime/self_test/self_test.h"

namespace forge::vk {

class VulkanDriver final : public Driver {
 public:
  // Loads nothing; the environment and Vulkan are read at the first call.
  VulkanDriver() = default;
  // Lists the physical devices. Without a loader, a driver or valid settings, the list is one
  // unusable entry "vulkan" with the reason.
  std::vector<DeviceInfo> List() override;
  // Opens a device.
  //   errors: Unavailable (no such device, or not usable), InvalidArgument (the environment)
  absl::StatusOr<DeviceRef> Open(size_t index, const DeviceOptions& options) override;
  absl::Status TryFeatures(size_t index, std::span<const std::string> known, Tell tell) override;

 private:
  struct Loaded {
    Settings settings;
    std::shared_ptr<Instance> instance;
    std::vector<Queries> devices;
  };
  absl::StatusOr<const Loaded*> Load();
  // Returns the queries of a device.
  //   errors: Unavailable (no such device, or not usable)
  static absl::StatusOr<const Queries*> Find(const Loaded& loaded, size_t index);
  // Returns the self-test verdict of a device: from this process, from the cache folder, or from a
  // self-test run now.
  absl::StatusOr<SelfTest> Try(const Loaded& loaded, size_t index, bool cache);

  std::mutex mutex_;
  std::optional<absl::StatusOr<Loaded>> loaded_;  // under mutex_; constant once set
  std::map<size_t, SelfTest> tried_;              // under mutex_
};

}  // namespace forge::vk
