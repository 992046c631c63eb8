// SPDX-License-Identifier: Apache-2.0
// An opened device: what every object made from it shares and keeps alive.
#pragma once
#include <atomic>
#include <mutex>

#include "vk_runtime/api/features.h"

namespace forge::vk {

class Context : public DeviceFunctions {
 public:
  // errors: Unavailable with what vkCreateDevice said
  static absl::StatusOr<std::shared_ptr<Context>> Create(std::shared_ptr<Instance> instance,
                                                         Queries queries, Granted granted,
                                                         const Settings& settings);
  ~Context();
  Context(const Context&) = delete;
  // Another logical device of the same physical one, with the same features.  errors: as Create
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

  // Core functions since Vulkan 1.2, and an extension's before.
  PFN_vkGetSemaphoreCounterValue SemaphoreValue() const {
    return IsCore12() ? fn.vkGetSemaphoreCounterValue : fn.vkGetSemaphoreCounterValueKHR;
  }
  PFN_vkWaitSemaphores WaitSemaphores() const {
    return IsCore12() ? fn.vkWaitSemaphores : fn.vkWaitSemaphoresKHR;
  }

  // As ToStatus, and remembers a lost device.
  absl::Status Check(VkResult r, std::string_view call) const;
  // A handle, T being an Owned.  errors: as Check
  template <class T, class Info>
  absl::StatusOr<T> Make(const Info& info) const {
    typename T::Handle handle = VK_NULL_HANDLE;
    FORGE_RETURN_IF_ERROR(
        Check((fn.*T::Of::kCreate)(device, &info, nullptr, &handle), T::Of::kCreateName));
    return T(*this, handle);
  }
  // OK, or Aborted once the device was lost.
  absl::Status Health() const;

  // For debuggers and validation messages; nothing where VK_EXT_debug_utils is absent.
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
