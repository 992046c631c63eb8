// SPDX-License-Identifier: Apache-2.0
// A logical device with its queue and features; shared by every object created from it.
#pragma once
#include <atomic>
#include <mutex>

#include "vk_runtime/api/features.h"

namespace forge::vk {

// A logical device. Every object created from it keeps it alive.
class Context : public DeviceFunctions {
 public:
  // Creates a logical device.
  //   errors: Unavailable with the error of vkCreateDevice
  static absl::StatusOr<std::shared_ptr<Context>> Create(std::shared_ptr<Instance> instance,
                                                         Queries queries, Granted granted,
                                                         const Settings& settings);
  ~Context();
  Context(const Context&) = delete;
  // Creates another logical device of the same physical device, with the same features.
  //   errors: as Create
  absl::StatusOr<std::shared_ptr<Context>> Sibling() const {
    return Create(instance_, queries_, granted_, settings_);
  }

  const Instance& instance() const { return *instance_; }
  const Queries& queries() const { return queries_; }
  const Settings& settings() const { return settings_; }
  const codegen::Caps& caps() const { return granted_.caps; }
  const Abilities& abilities() const { return granted_.abilities; }
  const std::vector<Feature>& features() const { return granted_.list; }
  const VkPhysicalDeviceLimits& limits() const { return queries_.properties.limits; }
  const Rates& rates() const { return rates_; }
  uint32_t family() const { return family_; }
  VkQueue queue() const { return queue_; }

  // Functions that are core since Vulkan 1.2 and belong to an extension before.
  PFN_vkGetSemaphoreCounterValue SemaphoreValue() const {
    return IsCore12() ? fn.vkGetSemaphoreCounterValue : fn.vkGetSemaphoreCounterValueKHR;
  }
  PFN_vkWaitSemaphores WaitSemaphores() const {
    return IsCore12() ? fn.vkWaitSemaphores : fn.vkWaitSemaphoresKHR;
  }

  // Converts a result as ToStatus does, and records a lost device.
  absl::Status Check(VkResult r, std::string_view call) const;
  // Creates a handle; T is an Owned.
  //   errors: as Check
  template <class T, class Info>
  absl::StatusOr<T> Make(const Info& info) const {
    typename T::Handle handle = VK_NULL_HANDLE;
    FORGE_RETURN_IF_ERROR(
        Check((fn.*T::Of::kCreate)(device, &info, nullptr, &handle), T::Of::kCreateName));
    return T(*this, handle);
  }
  // Returns OK, or Aborted after the device was lost.
  absl::Status Health() const;

  // Names an object for debuggers and validation messages; does nothing without VK_EXT_debug_utils.
  void SetName(VkObjectType type, uint64_t handle, const std::string& name) const;

 private:
  Context() = default;
  bool IsCore12() const { return queries_.api >= VK_API_VERSION_1_2; }

  std::shared_ptr<Instance> instance_;
  Queries queries_;
  Granted granted_;
  Settings settings_;
  Rates rates_{};
  uint32_t family_ = 0;
  VkQueue queue_ = VK_NULL_HANDLE;
  mutable std::atomic<bool> lost_{false};
  mutable std::mutex mutex_;
  mutable absl::Status loss_;  // under mutex_
};
using ContextRef = std::shared_ptr<Context>;

}  // namespace forge::vk
