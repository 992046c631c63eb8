// SPDX-License-Identifier: Apache-2.0
// The Vulkan instance, and the messages of the validation layers.
#pragma once
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "vk_runtime/api/vulkan.h"

namespace forge::vk {

// A Vulkan instance.
class Instance {
 public:
  // Loads Vulkan and creates an instance. With `validate`, enables VK_LAYER_KHRONOS_validation with
  // synchronisation checks, and records all of its messages.
  //   errors: Unavailable (no loader, no driver, or no validation layer)
  static absl::StatusOr<std::shared_ptr<Instance>> Create(bool validate);
  ~Instance();
  Instance(const Instance&) = delete;

  VkInstance handle() const { return handle_; }
  uint32_t api() const { return api_; }  // the newest usable API version
  bool has_debug_utils() const { return debug_utils_; }
  // True when steps are labelled for frame-capture tools. Labels are off under the validation
  // layers: versions up to at least 1.3.239 keep the labels of all command buffers in a table
  // without a lock, and crash where several threads record.
  bool shows_labels() const { return debug_utils_ && messenger_ == VK_NULL_HANDLE; }
  absl::StatusOr<std::vector<VkPhysicalDevice>> Devices() const;
  // Returns OK, or Internal with the first validation message and the number of messages.
  absl::Status Validation() const;

 private:
  Instance() = default;
  absl::Status Init(bool validate);
  absl::Status Make(bool validate, VkInstanceCreateFlags flags,
                    std::span<const char* const> extensions);
  absl::Status Listen();  // subscribes to the validation messages
  static VKAPI_ATTR VkBool32 VKAPI_CALL OnMessage(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                  VkDebugUtilsMessageTypeFlagsEXT types,
                                                  const VkDebugUtilsMessengerCallbackDataEXT* data,
                                                  void* self);

  VkInstance handle_ = VK_NULL_HANDLE;
  uint32_t api_ = 0;
  bool debug_utils_ = false;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  mutable std::mutex mutex_;
  std::vector<std::string> messages_;  // under mutex_
};

}  // namespace forge::vk
