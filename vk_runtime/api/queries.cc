// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/api/queries.h"

#include <algorithm>
#include <cstring>

namespace forge::vk {
namespace {

// Puts a structure before the others of a pNext chain.
template <class T>
void Link(void** chain, T& s, VkStructureType type) {
  s.sType = type;
  s.pNext = *chain;
  *chain = &s;
}

// Calls f(structure, type, extension, the version whose core it is part of; 0: none) for each.
template <class F>
void ForEachFeature(FeatureSet& s, F f) {
  f(s.storage16, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES,
    VK_KHR_16BIT_STORAGE_EXTENSION_NAME, VK_API_VERSION_1_1);
  f(s.storage8, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES,
    VK_KHR_8BIT_STORAGE_EXTENSION_NAME, VK_API_VERSION_1_2);
  f(s.float16_int8, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES,
    VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME, VK_API_VERSION_1_2);
  f(s.subgroup_size, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES,
    VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME, VK_API_VERSION_1_3);
  f(s.uniform_flow,
    VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SUBGROUP_UNIFORM_CONTROL_FLOW_FEATURES_KHR,
    VK_KHR_SHADER_SUBGROUP_UNIFORM_CONTROL_FLOW_EXTENSION_NAME, 0u);
  f(s.int_dot, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES,
    VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME, VK_API_VERSION_1_3);
  f(s.memory_model, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES,
    VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME, VK_API_VERSION_1_2);
  f(s.timeline, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
    VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME, VK_API_VERSION_1_2);
  f(s.atomic_float, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT,
    VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME, 0u);
  f(s.executable, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR,
    VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME, 0u);
  f(s.matrices, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR,
    VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME, 0u);
  f(s.matrices2, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV,
    VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME, 0u);
}

void QueryProperties(Queries& q) {
  auto all = Typed<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
  auto add = [&](auto& s, VkStructureType type, const char* extension, uint32_t core_since) {
    if (q.Has(extension, core_since)) Link(&all.pNext, s, type);
  };
  Link(&all.pNext, q.allocation, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES);
  Link(&all.pNext, q.subgroup, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES);
  Link(&all.pNext, q.id, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES);
  add(q.driver, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES,
      VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME, VK_API_VERSION_1_2);
  add(q.float_controls, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES,
      VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME, VK_API_VERSION_1_2);
  add(q.subgroup_size, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES,
      VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME, VK_API_VERSION_1_3);
  add(q.int_dot, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES,
      VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME, VK_API_VERSION_1_3);
  add(q.maintenance4, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES,
      VK_KHR_MAINTENANCE_4_EXTENSION_NAME, VK_API_VERSION_1_3);
  add(q.host_memory, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT,
      VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME, 0u);
  add(q.push_descriptors, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PUSH_DESCRIPTOR_PROPERTIES_KHR,
      VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME, 0u);
  vkGetPhysicalDeviceProperties2(q.device, &all);
}

void QueryFeatures(Queries& q) {
  auto all = Typed<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
  ForEachFeature(q.features, [&](auto& s, VkStructureType type, const char* ext, uint32_t since) {
    if (q.Has(ext, since)) Link(&all.pNext, s, type);
  });
  vkGetPhysicalDeviceFeatures2(q.device, &all);
  q.features.core = all.features;
}

void QueryMatrices(const Instance& instance, Queries& q) {
  if (!q.Has(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME)) return;
  auto get =
      reinterpret_cast<PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR>(vkGetInstanceProcAddr(
          instance.handle(), "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"));
  if (get == nullptr) return;
  Enumerate(
      q.matrices,
      Typed<VkCooperativeMatrixPropertiesKHR>(VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR),
      get, q.device);
}

// A feature structure is its header and then VkBool32s.
template <class T>
bool AnySet(const T& s) {
  constexpr size_t kHeader = 2 * sizeof(void*);
  static_assert(sizeof(T) > kHeader);
  VkBool32 bits[(sizeof(T) - kHeader) / sizeof(VkBool32)];
  std::memcpy(bits, reinterpret_cast<const char*>(&s) + kHeader, sizeof(bits));
  return std::any_of(std::begin(bits), std::end(bits), [](VkBool32 b) { return b == VK_TRUE; });
}

}  // namespace

uint64_t Queries::memory_bytes() const {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < memory.memoryHeapCount; ++i) bytes += memory.memoryHeaps[i].size;
  return bytes;
}

Rates AssumedRates(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return {.flops = 500e9, .bytes = 100e9};
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return {.flops = 5e9, .bytes = 2e9};
    default:
      return {.flops = 50e9, .bytes = 10e9};
  }
}

Queries Query(const Instance& instance, VkPhysicalDevice device) {
  Queries q;
  q.device = device;
  vkGetPhysicalDeviceProperties(device, &q.properties);
  q.api = std::min(instance.api(), q.properties.apiVersion);
  std::vector<VkExtensionProperties> extensions;
  Enumerate(extensions, {}, vkEnumerateDeviceExtensionProperties, device, nullptr);
  for (const VkExtensionProperties& e : extensions) q.extensions.insert(e.extensionName);
  vkGetPhysicalDeviceMemoryProperties(device, &q.memory);
  Enumerate(q.queues, {}, vkGetPhysicalDeviceQueueFamilyProperties, device);
  if (q.api < VK_API_VERSION_1_1) return q;
  QueryProperties(q);
  QueryFeatures(q);
  QueryMatrices(instance, q);
  return q;
}

void Request(const Queries& q, FeatureSet& want, FeatureChain& chain) {
  chain.head = Typed<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
  chain.head.features = want.core;
  ForEachFeature(want, [&](auto& s, VkStructureType type, const char* ext, uint32_t since) {
    if (!AnySet(s)) return;
    Link(&chain.head.pNext, s, type);
    if (since == 0 || q.api < since) chain.extensions.push_back(ext);
  });
}

}  // namespace forge::vk
