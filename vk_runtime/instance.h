// SPDX-License-Identifier: Apache-2.0
// The connection to the Vulkan loader, and what the validation layers say through it.
#pragma once
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "vk_runtime/vulkan.h"

namespace forge::vk {

// Entry points of VK_EXT_debug_utils; null where the extension is absent.
struct DebugUtils {
  PFN_vkCreateDebugUtilsMessengerEXT create = nullptr;
  PFN_vkDestroyDebugUtilsMessengerEXT destroy = nullptr;
  PFN_vkSetDebugUtilsObjectNameEXT set_name = nullptr;
  PFN_vkCmdBeginDebugUtilsLabelEXT begin_label = nullptr;
  PFN_vkCmdEndDebugUtilsLabelEXT end_label = nullptr;
};

class Instance {
 public:
  // Loads Vulkan. With `validate`, VK_LAYER_KHRONOS_validation and its synchronisation checks are
  // on, and every message of theirs is kept.
  //   errors: Unavailable: no loader, no driver, or no validation layer, each as a sentence
  static absl::StatusOr<std::shared_ptr<Instance>> Create(bool validate);
  ~Instance();
  Instance(const Instance&) = delete;

  VkInstance handle() const { return handle_; }
  uint32_t api() const { return api_; }  // the newest version that may be used
  const DebugUtils& debug() const { return debug_; }
  absl::StatusOr<std::vector<VkPhysicalDevice>> Devices() const;
  // OK, or Internal with the first message of the validation layers and their number.
  absl::Status Validation() const;

 private:
  Instance() = default;
  absl::Status Init(bool validate);
  absl::Status Make(bool validate, VkInstanceCreateFlags flags,
                    std::span<const char* const> extensions);
  void LoadDebugUtils();
  absl::Status Listen();  // to the validation layers
  static VKAPI_ATTR VkBool32 VKAPI_CALL OnMessage(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                  VkDebugUtilsMessageTypeFlagsEXT types,
                                                  const VkDebugUtilsMessengerCallbackDataEXT* data,
                                                  void* self);

  VkInstance handle_ = VK_NULL_HANDLE;
  uint32_t api_ = 0;
  DebugUtils debug_;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  mutable std::mutex mutex_;
  std::vector<std::string> messages_;  // under mutex_
};

}  // namespace forge::vk
