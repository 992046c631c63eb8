// SPDX-License-Identifier: Apache-2.0
// Which memory types and how large allocations serve what memory is for.
#pragma once
#include <optional>
#include <vector>

#include "vk_runtime/api/queries.h"

namespace forge::vk {

// The heap that Memory::kDevice comes from, by number; nullopt: a device without memory.
std::optional<uint32_t> DeviceHeap(const VkPhysicalDeviceMemoryProperties& memory);

// Bytes of the largest allocation, which a buffer fills: a multiple of kAlignment.
uint64_t LargestAllocation(const Queries& q, const Settings& settings);

// Memory types that `kind` can live in, best first. `bits` as in VkMemoryRequirements.
std::vector<uint32_t> TypesFor(const VkPhysicalDeviceMemoryProperties& memory, Memory kind,
                               uint32_t bits);

}  // namespace forge::vk
