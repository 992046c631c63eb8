// SPDX-License-Identifier: Apache-2.0
// Allocation of device memory from large blocks, because a driver limits the number of allocations.
// Only buffers are allocated, so bufferImageGranularity does not apply.
#pragma once
#include <array>
#include <map>
#include <optional>

#include "vk_runtime/api/context.h"
#include "vk_runtime/api/memory_types.h"

namespace forge::vk {

// The free ranges of a block: best fit over disjoint, non-adjacent ranges. Not synchronised.
class FreeList {
 public:
  explicit FreeList(uint64_t size) : size_(size), free_{{0, size}} {}
  // Takes `size` bytes at a multiple of `alignment` (a power of two); nullopt when no range fits.
  std::optional<uint64_t> Take(uint64_t size, uint64_t alignment);
  // Returns bytes that Take gave, with the same size; a FORGE_CHECK fails when they were not taken.
  void Give(uint64_t offset, uint64_t size);
  bool empty() const { return free_.size() == 1 && free_.begin()->second == size_; }

 private:
  uint64_t size_;
  std::map<uint64_t, uint64_t> free_;  // offset -> bytes
};

// Available bytes of each memory heap.
using HeapBytes = std::array<uint64_t, VK_MAX_MEMORY_HEAPS>;

// The device memory of one context.
class Heap {
  // One allocation of the driver.
  struct Block {
    OwnedMemory memory;
    uint32_t type, heap;
    bool map;
    bool coherent;
    uint64_t size;
    uint8_t* mapped = nullptr;
    FreeList free;
  };
  // The requirements for memory in a block.
  struct Claim {
    uint64_t bytes, alignment;
    bool map;
  };

 public:
  explicit Heap(ContextRef context);
  Heap(const Heap&) = delete;

  // A range of a block, freed with the last reference.
  struct Part {
    Block* block;
    uint64_t offset, size;
    VkDeviceMemory memory() const { return block->memory.get(); }
    // Null unless the kind is mapped and the driver can map it.
    uint8_t* mapped() const { return block->mapped == nullptr ? nullptr : block->mapped + offset; }
    // False: the caller flushes after writing and invalidates before reading.
    bool coherent() const { return block->coherent; }
  };
  using PartRef = std::shared_ptr<const Part>;
  // Allocates memory, from a heap with enough available memory if there is one. Memory::kDevice
  // never uses host memory where the device has its own, unless Settings::host_memory is set.
  //   errors: ResourceExhausted with the bytes requested and available
  static absl::StatusOr<PartRef> Allocate(const std::shared_ptr<Heap>& heap, Memory kind,
                                          const VkMemoryRequirements& needs);

  uint64_t Left() const;  // available bytes of the heap that serves Memory::kDevice
  uint64_t largest_allocation() const { return largest_; }  // bytes
  const ContextRef& context() const { return context_; }

 private:
  // All except Release are called under mutex_.
  absl::StatusOr<Part> Take(Memory kind, const VkMemoryRequirements& needs);
  std::optional<Part> TakeFree(uint32_t type, const Claim& claim);
  absl::StatusOr<Part> TakeNew(uint32_t type, const Claim& claim, const HeapBytes& left);
  absl::StatusOr<Block*> NewBlock(uint32_t type, bool map, uint64_t bytes);
  void Release(const Part& part);
  HeapBytes LeftInHeaps() const;

  ContextRef context_;
  uint64_t largest_, most_allocations_;
  bool spills_;  // device data may be placed in host memory
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Block>> blocks_;    // under mutex_
  uint64_t allocated_[VK_MAX_MEMORY_HEAPS] = {};  // bytes, under mutex_
};
using HeapRef = std::shared_ptr<Heap>;

// The types in `types` that are in device-local memory; all of them where none is.
std::vector<uint32_t> InOwnMemory(const VkPhysicalDeviceMemoryProperties& memory,
                                  std::vector<uint32_t> types);

// `types`, those with `bytes` available in their heap first; otherwise in the given order.
std::vector<uint32_t> ByRoom(const VkPhysicalDeviceMemoryProperties& memory,
                             std::vector<uint32_t> types, uint64_t bytes, const HeapBytes& left);

}  // namespace forge::vk
