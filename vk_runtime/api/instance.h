// SPDX-License-Identifier: Apache-2.0
// The connection to the Vulkan loader, and what the validation layers say through it.
#pragma once
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "vk_runtime/api/vulkan.h"

namespace forge::vk {

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
  bool has_debug_utils() const { return debug_utils_; }
  // Steps are labelled for tools that capture frames, not for the validation layers: those up to
  // 1.3.239 at least keep the labels of all command buffers in a table without a lock, and crash
  // where several threads record.
  bool shows_labels() const { return debug_utils_ && messenger_ == VK_NULL_HANDLE; }
  absl::StatusOr<std::vector<VkPhysicalDevice>> Devices() const;
  // OK, or Internal with the first message of the validation layers and their number.
  absl::Status Validation() const;

 private:
  Instance() = default;
  absl::Status Init(bool validate);
  absl::Status Make(bool validate, VkInstanceCreateFlags flags,
                    std::span<const char* const> extensions);
  absl::Status Listen();  // to the validation layers
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
