// SPDX-License-Identifier: Apache-2.0
// The properties and features of a physical device, queried once.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "codegen/target/rates.h"
#include "vk_runtime/api/instance.h"

namespace forge::vk {

using codegen::Rates;

// The feature structures that Forge uses: filled by a query, what the driver offers; filled by
// Request, what a new device enables.
struct FeatureSet {
  VkPhysicalDeviceFeatures core{};
  VkPhysicalDevice16BitStorageFeatures storage16{};
  VkPhysicalDevice8BitStorageFeatures storage8{};
  VkPhysicalDeviceShaderFloat16Int8Features float16_int8{};
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroup_size{};
  VkPhysicalDeviceShaderSubgroupUniformControlFlowFeaturesKHR uniform_flow{};
  VkPhysicalDeviceShaderIntegerDotProductFeatures int_dot{};
  VkPhysicalDeviceVulkanMemoryModelFeatures memory_model{};
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline{};
  VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomic_float{};
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executable{};
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrices{};
  VkPhysicalDeviceCooperativeMatrix2FeaturesNV matrices2{};
};

// The answers of a driver about one physical device.
struct Queries {
  VkPhysicalDevice device = VK_NULL_HANDLE;
  uint32_t api = 0;  // the usable version: the lowest of that of the device, of the loader, and 1.3
  std::set<std::string, std::less<>> extensions;
  VkPhysicalDeviceProperties properties{};
  VkPhysicalDeviceMaintenance3Properties allocation{};
  VkPhysicalDeviceMaintenance4Properties maintenance4{};
  VkPhysicalDeviceSubgroupProperties subgroup{};
  VkPhysicalDeviceIDProperties id{};
  VkPhysicalDeviceDriverProperties driver{};
  VkPhysicalDeviceFloatControlsProperties float_controls{};
  VkPhysicalDeviceSubgroupSizeControlProperties subgroup_size{};
  VkPhysicalDeviceShaderIntegerDotProductProperties int_dot{};
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT host_memory{};
  VkPhysicalDevicePushDescriptorPropertiesKHR push_descriptors{};
  VkPhysicalDeviceMemoryProperties memory{};
  std::vector<VkQueueFamilyProperties> queues;
  std::vector<VkCooperativeMatrixPropertiesKHR> matrices;
  FeatureSet features;

  // Returns true when the extension is present, by name or as part of core version `core_since` (0:
  // never core).
  bool Has(std::string_view extension, uint32_t core_since = 0) const {
    return (core_since != 0 && api >= core_since) || extensions.count(extension) != 0;
  }
  uint64_t memory_bytes() const;  // of all heaps
  // True when host memory is as near to the device as any memory.
  bool shares_memory() const {
    return properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU ||
           properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  }
};

// The rates assumed before any measurement.
Rates AssumedRates(VkPhysicalDeviceType type);

// Queries a device. Values that the driver does not provide stay zero.
Queries Query(const Instance& instance, VkPhysicalDevice device);

// The chain of structures that enables the features set in `want`, and the extensions they need.
// `head` starts the chain, whose links point into `want`.
struct FeatureChain {
  VkPhysicalDeviceFeatures2 head{};
  std::vector<const char*> extensions;
};
// Builds the chain.
void Request(const Queries& q, FeatureSet& want, FeatureChain& chain);

}  // namespace forge::vk
