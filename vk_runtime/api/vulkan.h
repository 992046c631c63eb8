// SPDX-License-Identifier: Apache-2.0
// Vulkan declarations: the volk loader, declarations that the headers of the distribution lack,
// conversion of results, and owned handles.
#pragma once
#include <volk.h>

#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/status.h"

// The part of VK_KHR_cooperative_matrix that Forge uses. Source: the Vulkan registry, 1.3.255.
#ifndef VK_KHR_cooperative_matrix
#define VK_KHR_cooperative_matrix 1  // NOLINT: the registry's name
#define VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME "VK_KHR_cooperative_matrix"
constexpr VkStructureType VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR =
    static_cast<VkStructureType>(1000506000);
constexpr VkStructureType VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR =
    static_cast<VkStructureType>(1000506001);
enum VkComponentTypeKHR {
  VK_COMPONENT_TYPE_FLOAT16_KHR = 0,
  VK_COMPONENT_TYPE_FLOAT32_KHR = 1,
  VK_COMPONENT_TYPE_SINT8_KHR = 3,
  VK_COMPONENT_TYPE_SINT32_KHR = 5,
  VK_COMPONENT_TYPE_UINT8_KHR = 7,
  VK_COMPONENT_TYPE_UINT32_KHR = 9,
  VK_COMPONENT_TYPE_MAX_ENUM_KHR = 0x7FFFFFFF
};
enum VkScopeKHR { VK_SCOPE_SUBGROUP_KHR = 3, VK_SCOPE_MAX_ENUM_KHR = 0x7FFFFFFF };
struct VkCooperativeMatrixPropertiesKHR {
  VkStructureType sType;
  void* pNext;
  uint32_t MSize, NSize, KSize;
  VkComponentTypeKHR AType, BType, CType, ResultType;
  VkBool32 saturatingAccumulation;
  VkScopeKHR scope;
};
struct VkPhysicalDeviceCooperativeMatrixFeaturesKHR {
  VkStructureType sType;
  void* pNext;
  VkBool32 cooperativeMatrix;
  VkBool32 cooperativeMatrixRobustBufferAccess;
};
using PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR =
    VkResult(VKAPI_PTR*)(VkPhysicalDevice, uint32_t*, VkCooperativeMatrixPropertiesKHR*);
#endif

// The part of VK_NV_cooperative_matrix2 that Forge uses. Source: the Vulkan registry, 1.3.297.
#ifndef VK_NV_cooperative_matrix2
#define VK_NV_cooperative_matrix2 1  // NOLINT: the registry's name
#define VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME "VK_NV_cooperative_matrix2"
constexpr VkStructureType VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV =
    static_cast<VkStructureType>(1000593000);
struct VkPhysicalDeviceCooperativeMatrix2FeaturesNV {
  VkStructureType sType;
  void* pNext;
  VkBool32 cooperativeMatrixWorkgroupScope;
  VkBool32 cooperativeMatrixFlexibleDimensions;
  VkBool32 cooperativeMatrixReductions;
  VkBool32 cooperativeMatrixConversions;
  VkBool32 cooperativeMatrixPerElementOperations;
  VkBool32 cooperativeMatrixTensorAddressing;
  VkBool32 cooperativeMatrixBlockLoads;
};
#endif

namespace forge::vk {

// The name of an error code: "VK_ERROR_OUT_OF_DEVICE_MEMORY".
std::string_view ResultName(VkResult r);

// Converts the result of `call` to a status. VK_NOT_READY and VK_INCOMPLETE are errors, too.
//   errors: Aborted (device lost), ResourceExhausted (memory), Internal
absl::Status ToStatus(VkResult r, std::string_view call);

// A Vulkan structure with sType set.
template <class T>
T Typed(VkStructureType type) {
  T s{};
  s.sType = type;
  return s;
}

// Fills `all` with a Vulkan enumeration function that returns first the count and then the
// elements; empty when the function fails.
//   blank: an element with sType set     first: the leading arguments of the function
template <class T, class F, class... First>
VkResult Enumerate(std::vector<T>& all, const std::type_identity_t<T>& blank, F list,
                   First... first) {
  const auto call = [&](auto* n, T* to) {
    if constexpr (!std::is_void_v<decltype(list(first..., n, to))>) return list(first..., n, to);
    list(first..., n, to);
    return VK_SUCCESS;
  };
  // Byte arrays have a size_t count.
  // NOLINTNEXTLINE(bugprone-sizeof-expression): elements may be pointers
  std::conditional_t<sizeof(T) == 1, size_t, uint32_t> n = 0;
  VkResult r = call(&n, nullptr);
  all.assign(r < 0 ? 0 : n, blank);
  if (!all.empty()) r = call(&n, all.data());
  all.resize(r < 0 ? 0 : n);
  return r;
}

// A logical device and its functions: what a handle needs for its destruction.
struct DeviceFunctions {
  VkDevice device = VK_NULL_HANDLE;
  VolkDeviceTable fn{};
};

// Owns one handle of the kind that `Calls` creates and destroys. The holder of an Owned keeps the
// device alive longer.
template <class Calls>
class Owned {
 public:
  using Of = Calls;
  using Handle = typename Calls::Handle;
  Owned() = default;
  Owned(const DeviceFunctions& device, Handle handle) : device_(&device), handle_(handle) {}
  Owned(Owned&& o) noexcept
      : device_(o.device_), handle_(std::exchange(o.handle_, Handle{VK_NULL_HANDLE})) {}
  Owned& operator=(Owned&& o) noexcept {
    std::swap(device_, o.device_);
    std::swap(handle_, o.handle_);
    return *this;
  }
  ~Owned() {
    if (*this) (device_->fn.*Calls::kDestroy)(device_->device, handle_, nullptr);
  }
  Handle get() const { return handle_; }
  const Handle* address() const { return &handle_; }
  explicit operator bool() const { return handle_ != Handle{VK_NULL_HANDLE}; }

 private:
  const DeviceFunctions* device_ = nullptr;
  Handle handle_ = VK_NULL_HANDLE;
};

#define FORGE_VK_OWNED(name, handle, create, destroy)           \
  struct name##Calls {                                          \
    using Handle = handle;                                      \
    static constexpr auto kCreate = &VolkDeviceTable::create;   \
    static constexpr auto kDestroy = &VolkDeviceTable::destroy; \
    static constexpr std::string_view kCreateName = #create;    \
  };                                                            \
  using Owned##name = Owned<name##Calls>
FORGE_VK_OWNED(Buffer, VkBuffer, vkCreateBuffer, vkDestroyBuffer);
FORGE_VK_OWNED(Memory, VkDeviceMemory, vkAllocateMemory, vkFreeMemory);
FORGE_VK_OWNED(Pipeline, VkPipeline, vkCreateComputePipelines, vkDestroyPipeline);
FORGE_VK_OWNED(PipelineCache, VkPipelineCache, vkCreatePipelineCache, vkDestroyPipelineCache);
FORGE_VK_OWNED(PipelineLayout, VkPipelineLayout, vkCreatePipelineLayout, vkDestroyPipelineLayout);
FORGE_VK_OWNED(SetLayout, VkDescriptorSetLayout, vkCreateDescriptorSetLayout,
               vkDestroyDescriptorSetLayout);
FORGE_VK_OWNED(DescriptorPool, VkDescriptorPool, vkCreateDescriptorPool, vkDestroyDescriptorPool);
FORGE_VK_OWNED(ShaderModule, VkShaderModule, vkCreateShaderModule, vkDestroyShaderModule);
FORGE_VK_OWNED(CommandPool, VkCommandPool, vkCreateCommandPool, vkDestroyCommandPool);
FORGE_VK_OWNED(QueryPool, VkQueryPool, vkCreateQueryPool, vkDestroyQueryPool);
FORGE_VK_OWNED(Fence, VkFence, vkCreateFence, vkDestroyFence);
FORGE_VK_OWNED(Semaphore, VkSemaphore, vkCreateSemaphore, vkDestroySemaphore);
#undef FORGE_VK_OWNED

}  // namespace forge::vk
