// SPDX-License-Identifier: Apache-2.0
// Choice of memory types and allocation sizes.
#pragma once
#include <optional>
#include <vector>

#include "runtime/device/device.h"
#include "vk_runtime/api/features.h"
#include "vk_runtime/api/queries.h"

namespace forge::vk {

// The index of the heap that serves Memory::kDevice; nullopt for a device without memory.
std::optional<uint32_t> DeviceHeap(const VkPhysicalDeviceMemoryProperties& memory);

// The largest allocation in bytes, which one buffer may fill: a multiple of kAlignment.
uint64_t LargestAllocation(const Queries& q, const Settings& settings);

// Returns the memory types for `kind`, best first.
//   bits: as in VkMemoryRequirements
std::vector<uint32_t> TypesFor(const VkPhysicalDeviceMemoryProperties& memory, Memory kind,
                               uint32_t bits);

}  // namespace forge::vk
