// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/api/vulkan.h"

namespace forge::vk {

std::string_view ResultName(VkResult r) {
  switch (r) {
#define FORGE_VK_RESULT(name) \
  case name:                  \
    return #name;
    FORGE_VK_RESULT(VK_NOT_READY)
    FORGE_VK_RESULT(VK_TIMEOUT)
    FORGE_VK_RESULT(VK_INCOMPLETE)
    FORGE_VK_RESULT(VK_ERROR_OUT_OF_HOST_MEMORY)
    FORGE_VK_RESULT(VK_ERROR_OUT_OF_DEVICE_MEMORY)
    FORGE_VK_RESULT(VK_ERROR_INITIALIZATION_FAILED)
    FORGE_VK_RESULT(VK_ERROR_DEVICE_LOST)
    FORGE_VK_RESULT(VK_ERROR_MEMORY_MAP_FAILED)
    FORGE_VK_RESULT(VK_ERROR_LAYER_NOT_PRESENT)
    FORGE_VK_RESULT(VK_ERROR_EXTENSION_NOT_PRESENT)
    FORGE_VK_RESULT(VK_ERROR_FEATURE_NOT_PRESENT)
    FORGE_VK_RESULT(VK_ERROR_INCOMPATIBLE_DRIVER)
    FORGE_VK_RESULT(VK_ERROR_TOO_MANY_OBJECTS)
    FORGE_VK_RESULT(VK_ERROR_FRAGMENTED_POOL)
    FORGE_VK_RESULT(VK_ERROR_OUT_OF_POOL_MEMORY)
    FORGE_VK_RESULT(VK_ERROR_INVALID_EXTERNAL_HANDLE)
    FORGE_VK_RESULT(VK_ERROR_UNKNOWN)
#undef FORGE_VK_RESULT
    default:
      return "an unnamed VkResult";
  }
}

absl::Status ToStatus(VkResult r, std::string_view call) {
  switch (r) {
    case VK_SUCCESS:
      return absl::OkStatus();
    case VK_ERROR_DEVICE_LOST:
      return Aborted("the device was lost in {}", call);
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_TOO_MANY_OBJECTS:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_FRAGMENTED_POOL:
      return ResourceExhausted("{} failed: {}", call, ResultName(r));
    default:
      return Internal("{} failed: {} ({})", call, ResultName(r), static_cast<int>(r));
  }
}

}  // namespace forge::vk
