// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/api/memory_types.h"

#include <algorithm>

namespace forge::vk {
namespace {

constexpr uint64_t kGuaranteedAllocation = 1ull << 30;  // VkPhysicalDeviceMaintenance3Properties

// Higher is better; -1: cannot.
int Score(VkMemoryPropertyFlags f, Memory kind) {
  if ((f & (VK_MEMORY_PROPERTY_PROTECTED_BIT | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT |
            VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD)) != 0)
    return -1;
  const int local = (f & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0;
  const int visible = (f & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0;
  const int coherent = (f & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0;
  const int cached = (f & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0;
  if (kind == Memory::kDevice) return 4 * local + (1 - visible);
  if (!visible) return -1;
  // The host writes uploads once, in order, and reads readbacks; device-local windows are small.
  if (kind == Memory::kUpload) return 4 * coherent + 2 * (1 - local) + (1 - cached);
  return 4 * cached + 2 * coherent + (1 - local);
}

}  // namespace

std::vector<uint32_t> TypesFor(const VkPhysicalDeviceMemoryProperties& memory, Memory kind,
                               uint32_t bits) {
  std::vector<uint32_t> types;
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i)
    if ((bits >> i & 1) != 0 && Score(memory.memoryTypes[i].propertyFlags, kind) >= 0)
      types.push_back(i);
  std::stable_sort(types.begin(), types.end(), [&](uint32_t a, uint32_t b) {
    const auto &ta = memory.memoryTypes[a], &tb = memory.memoryTypes[b];
    const int sa = Score(ta.propertyFlags, kind), sb = Score(tb.propertyFlags, kind);
    if (sa != sb) return sa > sb;
    return memory.memoryHeaps[ta.heapIndex].size > memory.memoryHeaps[tb.heapIndex].size;
  });
  return types;
}

std::optional<uint32_t> DeviceHeap(const VkPhysicalDeviceMemoryProperties& memory) {
  const auto types = TypesFor(memory, Memory::kDevice, UINT32_MAX);
  if (types.empty()) return std::nullopt;
  return memory.memoryTypes[types[0]].heapIndex;
}

uint64_t LargestAllocation(const Queries& q, const Settings& settings) {
  uint64_t most = std::min<uint64_t>(q.allocation.maxMemoryAllocationSize,
                                     static_cast<uint64_t>(settings.max_allocation_bytes));
  if (q.maintenance4.maxBufferSize != 0)
    most = std::min<uint64_t>(most, q.maintenance4.maxBufferSize);
  if (settings.guaranteed) most = std::min(most, kGuaranteedAllocation);
  // A heap smaller than one allocation may be.
  if (const auto heap = DeviceHeap(q.memory))
    most = std::min<uint64_t>(most, q.memory.memoryHeaps[*heap].size);
  return most / kAlignment * kAlignment;
}

}  // namespace forge::vk
