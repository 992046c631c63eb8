// SPDX-License-Identifier: Apache-2.0
// The driver that the plug-in exports: lists and opens Vulkan devices.
#pragma once
#include "vk_runtime/self_test/self_test.h"

namespace forge::vk {

class VulkanDriver final : public Driver {
 public:
  // Reads the environment when it is first asked for something.
  VulkanDriver() = default;
  // One entry for each physical device. Where there is no loader, no driver, or a setting that
  // cannot be followed, one entry "vulkan" that is not usable and says so.
  std::vector<DeviceInfo> List() override;
  // errors: Unavailable (no such device, or not usable), InvalidArgument (the environment)
  absl::StatusOr<DeviceRef> Open(size_t index, const DeviceOptions& options) override;
  absl::Status TryFeatures(size_t index, std::span<const std::string> known, Tell tell) override;

 private:
  struct Loaded {
    Settings settings;
    std::shared_ptr<Instance> instance;
    std::vector<Queries> devices;
  };
  absl::StatusOr<const Loaded*> Load();
  // The device's queries.  errors: Unavailable (no such device, or not usable)
  static absl::StatusOr<const Queries*> Find(const Loaded& loaded, size_t index);
  // The verdict on a device: of this process, of the cache folder, or of a self-test run now.
  absl::StatusOr<SelfTest> Try(const Loaded& loaded, size_t index, bool cache);

  std::mutex mutex_;
  std::optional<absl::StatusOr<Loaded>> loaded_;  // under mutex_, then constant
  std::map<size_t, SelfTest> tried_;              // under mutex_
};

}  // namespace forge::vk
